#!/usr/bin/env python3
"""What happens to a job over emulated hosts when one of them drops off the network. Run by
tests/hosts/emulate, on the first of several hosts:

    hosts.py cut STEADY LAUNCHER      for two seconds: nothing is lost, and nobody says a word
    hosts.py outages STEADY LAUNCHER  again and again, for a second and a half: the same
    hosts.py crash LOST LAUNCHER      for good: the calls of the others end, and say why
    hosts.py apart LOST LAUNCHER      the same, but the host lives on, and sees the others lost
    hosts.py meeting BARRIERS LAUNCHER  for good, on PEs that have hardly met
    hosts.py waiting WAITS LAUNCHER     the same, and they wait for signals

LAUNCHER is one that tests/hosts/launch knows. The last host is the one that is struck."""

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(os.environ["HOSTS_DIR"], "list"), encoding="ascii") as hosts:
    HOSTS = len(list(hosts))
CUT_SECONDS = 2
PEER_TIMEOUT = 5  # a loaded machine's PEs and network have to be sooner


class Words:
    """The numbers in a file that a test's program maps."""

    def __init__(self, file, n):
        self.name = file.name
        file.write(bytes(8 * n))
        file.flush()

    def __getitem__(self, at):
        with open(self.name, "rb") as f:
            return struct.unpack_from("=Q", f.read(), 8 * at)[0]

    def __setitem__(self, at, value):
        with open(self.name, "r+b") as f:
            f.seek(8 * at)
            f.write(struct.pack("=Q", value))


class Job:
    def __init__(self, launcher, per_host, program, words):
        self.words = words
        command = [os.path.join(HERE, "..", "hosts", "launch"), launcher, HOSTS, per_host, program,
                   words.name]
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.said,
                                        stderr=subprocess.STDOUT)

    def output(self):
        self.said.seek(0)
        return self.said.read()

    def wait(self, condition, what, seconds=200):
        limit = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                self.fail(f"{what}: the job has ended")
            if time.monotonic() > limit:
                self.fail(f"{what}: not within {seconds} s")
            time.sleep(0.01)

    def end(self):
        """Ends what a launcher that has lost a host cannot end by itself; what it leaves goes with
        the hosts."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self.output()

    def fail(self, what):
        print(what)
        print(self.end())
        sys.exit(1)


def strike(what):
    subprocess.run([os.path.join(HERE, "..", "hosts", "fault"), what, str(HOSTS - 1)], check=True)


def cut(launcher, program, file):
    words = Words(file, 3)
    job = Job(launcher, 1, program, words)
    job.wait(lambda: words[2] == HOSTS, "start")
    words[1] = 1
    job.wait(lambda: words[0] > 10, "the first rounds")
    strike("cut")
    time.sleep(CUT_SECONDS / 2)
    before = words[0]
    time.sleep(CUT_SECONDS / 2)
    if words[0] > before + 1:  # the round that the cut came into may end on what was on its way
        job.fail("the job went on although a host was cut off")
    strike("heal")
    job.wait(lambda: words[0] > before + 10, "rounds after the network was healed")
    words[1] = 2
    job.process.wait(timeout=200)
    out = job.output()
    if job.process.returncode or not out.startswith("steady: ") or out.count("\n") != 1:
        job.fail(f"status {job.process.returncode}: {out}")


def kernel_bounds_retransmission():
    with socket.socket() as s:
        try:
            s.setsockopt(socket.IPPROTO_TCP, 44, 1000)  # TCP_RTO_MAX_MS
        except OSError:
            return False
    return True


def outages(launcher, program, file):
    """Each moment in which the network is back is long enough for an attempt in each second, and those of
    attempts after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s, which is TCP's own way, miss all of them."""
    if not kernel_bounds_retransmission():
        print("SKIP: this kernel has no TCP_RTO_MAX_MS (Linux 6.15)")
        sys.exit(77)
    words = Words(file, 3)
    job = Job(launcher, 1, program, words)
    job.wait(lambda: words[2] == HOSTS, "start")
    words[1] = 1
    job.wait(lambda: words[0] > 10, "the first rounds")
    for _ in range(8):
        strike("cut")
        time.sleep(1.5)
        strike("heal")
        time.sleep(1.2)
    before = words[0]
    job.wait(lambda: words[0] > before + 10, "rounds after the outages")
    words[1] = 2
    job.process.wait(timeout=200)
    out = job.output()
    if job.process.returncode or not out.startswith("steady: ") or out.count("\n") != 1:
        job.fail(f"status {job.process.returncode}: {out}")


def lose(launcher, program, file, how, per_host):
    words = Words(file, 4)
    survivors = (HOSTS - 1) * per_host
    os.environ["GSHMEM_PEER_TIMEOUT"] = str(PEER_TIMEOUT)
    os.environ.setdefault("GSHMEM_LOG", "none")
    job = Job(launcher, per_host, program, words)
    job.wait(lambda: words[0] == HOSTS * per_host, "start")
    time.sleep(0.2)  # most are in their calls; one that begins after the loss has to fail as well
    words[1] = time.monotonic_ns()
    strike(how)
    job.wait(lambda: words[2] >= survivors, "calls that need the lost host end")
    job.wait(lambda: words[3] == survivors, "what needs it not goes on, and finalize returns")
    print(job.end())


def main():
    scenario, program, launcher = sys.argv[1:]
    with tempfile.NamedTemporaryFile(prefix="gshmem-test-") as file:
        if scenario == "cut":
            cut(launcher, program, file)
        elif scenario == "outages":
            outages(launcher, program, file)
        else:
            lose(launcher, program, file, "cut" if scenario == "apart" else "crash",
                 2 if scenario in ("meeting", "waiting") else 4)


main()
