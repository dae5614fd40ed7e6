#!/usr/bin/env python3
"""Connects to the ports of a job's PEs, in all ways in which one who is none of them may.

    strangers.py STEADY COMMAND [ARGUMENT...]

COMMAND starts the job; it is given the program STEADY and a file at its end. While each attack lasts
the job must go on; afterwards it must end well, each PE having said no more than a line, and at the end
how many it has refused, with as much memory and as many descriptors as before. As root, what PEs of the job say to greet each other is
recorded on its way through the network, and said again."""

import atexit
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from network import enter_own  # noqa: E402

HELLO = 64  # and a proof
NONCE = 32
PROOF = 32
MAGIC = b"GSHMEMtc"
PEAK = 16 << 20   # how much a PE may grow while hundreds are at its door
GROWTH = 6 << 20  # and how much of that it may keep, which malloc does where small things lie between
HERE = os.path.dirname(os.path.abspath(__file__))
with open(f"{HERE}/../../transport/tcp/frame.h", encoding="utf-8") as source:
    VERSION = int(re.search(r"FRAME_VERSION = (\d+)", source.read()).group(1))

failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


# ---- The job ----

class PE:
    """A process of the job, and where it listens."""

    def __init__(self, pid):
        self.pid = pid
        sockets = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        self.ports = sorted({port for kind in ("tcp", "tcp6") for port, inode in self.listening(kind)
                             if f"socket:[{inode}]" in sockets})
        self.address = address_of(pid)

    def listening(self, kind):
        with open(f"/proc/{self.pid}/net/{kind}", encoding="ascii") as table:
            for line in list(table)[1:]:
                field = line.split()
                if field[3] == "0A":
                    yield int(field[1].rsplit(":", 1)[1], 16), field[9]

    def memory(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as f:
            field = f.read().split()
        return (int(field[1]) - int(field[2])) * os.sysconf("SC_PAGESIZE")  # what it does not share

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def address_of(pid):
    """Where a process is reached: on this host, or on one of tests/hosts."""
    network = os.readlink(f"/proc/{pid}/ns/net")
    hosts = os.environ.get("HOSTS_DIR")
    if not hosts:
        return "127.0.0.1"
    with open(f"{hosts}/list", encoding="ascii") as f:
        for line in f:
            address, name = line.split()
            with open(f"{hosts}/{name}/holder", encoding="ascii") as holder:
                if os.readlink(f"/proc/{holder.read().strip()}/ns/net") == network:
                    return address
    sys.exit(f"process {pid} is on no host")


def processes_with(file):
    """The job's PEs: who has the file in its command line, and mapped."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                with open(f"/proc/{entry}/maps", encoding="ascii", errors="replace") as f:
                    if file in f.read():
                        found.append(int(entry))
        except OSError:
            pass
    return found


class Job:
    def __init__(self, file, steady, command):
        self.file = file
        self.process = subprocess.Popen([*command, steady, file], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.terminate)

    def word(self, number):
        with open(self.file, "rb") as f:
            return struct.unpack("=3Q", f.read(24))[number]

    def ask(self, what):
        with open(self.file, "r+b") as f:
            f.seek(8)
            f.write(struct.pack("=Q", what))

    def wait(self, condition, what, seconds=100):
        limit = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > limit:
                self.process.terminate()
                out, err = self.process.communicate()
                sys.exit(f"{what}: the job {'hangs' if self.process.returncode < 0 else 'ended'}"
                         f"\n{out}\n{err}")
            time.sleep(0.01)

    def goes_on(self, what):
        before = self.word(0)
        self.wait(lambda: self.word(0) > before + 2, what)


# ---- Hellos of the job itself ----

class Recorder:
    """What PEs say to greet each other, taken from the network; nothing where that is not allowed."""

    def __init__(self):
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        except PermissionError:
            self.socket = None
            return
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.setblocking(False)

    def payloads(self):
        """All that has passed over IPv4 until now: (flow, bytes)."""
        while self.socket:
            try:
                packet = self.socket.recv(1 << 16)
            except BlockingIOError:
                self.socket.close()
                self.socket = None
                return
            if packet[12:14] != b"\x08\x00" or packet[23:24] != b"\x06":
                continue
            tcp = 14 + (packet[14] & 15) * 4
            if len(packet) >= tcp + 20:
                start = tcp + (packet[tcp + 12] >> 4) * 4
                end = 14 + struct.unpack(">H", packet[16:18])[0]
                yield packet[26:34] + packet[tcp:tcp + 4], packet[start:end]

    def take(self):
        """(port, hello, proof) of each stream that was opened."""
        greetings = {}
        for flow, said in self.payloads():
            if said.startswith(MAGIC) and len(said) == HELLO + PROOF:
                greetings.setdefault(flow, [said, b""])
            elif said and flow in greetings and not greetings[flow][1]:
                greetings[flow][1] = said[:PROOF]
        return sorted((struct.unpack(">H", flow[10:12])[0], hello, proof)
                      for flow, (hello, proof) in greetings.items())


# ---- Attacks: each gives the connections it leaves open ----

def connect(pe):
    return [socket.create_connection((pe.address, port), timeout=60) for port in pe.ports]


def say(*parts):
    """An attack that says it, in parts; who is hung up on has said enough."""
    def method(pe):
        connections = connect(pe)
        for c in connections:
            try:
                for part in parts:
                    c.sendall(part)
            except OSError:
                pass
        return connections
    return method


def hello(version=VERSION, sender=0, to=0, pes=2):
    """Its proof would need the key of the two PEs."""
    return MAGIC + struct.pack("<4I", version, sender, to, pes) + bytes(NONCE) + bytes(8 + PROOF)


def say_again(first):
    """A hello of a PE that has come in is not answered."""
    def method(pe):
        connections = connect(pe)
        for c in connections:
            c.sendall(first)
            check(not c.recv(NONCE + PROOF), "a hello said again gets an answer")
        return connections
    return method


def put(size):
    return struct.pack("<8B4Q", 1, 0, 0, 0, 0, 0, 0, 0, 0, size, 0, 0) + b"x" * size


def half_close(pe):
    connections = connect(pe)
    for c in connections:
        c.shutdown(socket.SHUT_WR)
    return connections


def reset(pe):
    for c in connect(pe):
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    return []


def come_and_go(pe):
    for _ in range(400):
        for c in connect(pe):
            c.close()
    return []


def stay(pe):
    return [c for _ in range(300) for c in connect(pe)]


# Those that may stay until they have been silent for too long, and those that are hung up on at once.
PATIENT = [
    ("silence", connect),
    ("a byte", say(b"G")),
    ("a hello cut short", say(hello(sender=1)[:HELLO + PROOF - 1])),
]


def rude(rng, recorded, pes):
    noise = rng.randbytes(300000)
    yield "nothing, politely", half_close
    yield "a reset", reset
    yield "noise", say(noise)
    yield "a web browser", say(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
    yield "a hello in pieces", say(*(hello()[i:i + 1] for i in range(HELLO)))
    yield "an endless hello", say(MAGIC + noise)
    yield "another version", say(hello(version=VERSION - 1) + put(64))
    yield "a job of another size", say(hello(pes=1000) + put(64))
    yield "no PE of the job", say(hello(sender=99, pes=len(pes)) + put(64))
    for to in range(len(pes)):
        yield f"no proof of a hello to PE {to}", say(hello(VERSION, 1 - to, to, len(pes)) + put(64))
    for port, first, proof in recorded:
        def to_it(method, port=port):
            return lambda pe: method(pe) if port in pe.ports else []
        nearly = bytes([*proof[:PROOF - 1], proof[PROOF - 1] ^ 1])
        yield "no proof", to_it(say(first, put(64)))
        yield "noise for a proof", to_it(say(first + noise[:PROOF] + put(64)))
        yield "a greeting said again", to_it(say(first, proof))
        yield "and a request", to_it(say(first + proof + put(64)))
        yield "nearly the greeting", to_it(say(first, nearly, put(64)))
        yield "a hello said again", to_it(say_again(first))
    yield "hundreds that come and go", come_and_go


# ---- The test ----

def is_hung_up_on(connection):
    try:
        connection.setblocking(False)
        while connection.recv(100):  # the answer to a hello
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def attack(job, pes, recorded, verbose):
    silent = PATIENT + [("a hello and no proof", say(first)) for _, first, _ in recorded]
    patient = [c for _, method in silent for pe in pes for c in method(pe)]
    for name, method in rude(random.Random(1), recorded, pes):
        connections = [c for pe in pes for c in method(pe)]
        if verbose:
            print(f"{name}: {len(connections)} connections", flush=True)
        job.wait(lambda: all(map(is_hung_up_on, connections)), f"{name} is still listened to")
        job.goes_on(name)
        for c in connections:
            c.close()
    patient += [c for pe in pes for c in stay(pe)]
    memory = [pe.memory() for pe in pes]
    job.goes_on("hundreds that stay")
    job.wait(lambda: all(map(is_hung_up_on, patient)), "who is silent stays")
    job.goes_on("afterwards")
    for c in patient:
        c.close()
    return memory


def check_lines(err, pes):
    refusal = re.compile(r"gshmem\[(\d+)@\S+\] warning: tcp: a connection was refused: ")
    number = re.compile(r"gshmem\[(\d+)@\S+\] warning: tcp: (\d+) connections were refused$")
    first, counted = [], []
    for line in filter(None, err.splitlines()):
        if match := refusal.match(line):
            first.append(match[1])
        elif match := number.match(line):
            counted.append(match[1])
            check(int(match[2]) > 300, line)
        elif "plm:rsh: Warning: setpgid(" not in line:  # mpirun's own race with its child
            check(False, f"the job said: {line}")
    for said in first, counted:
        check(1 <= len(said) == len(set(said)) <= len(pes), f"lines of PEs {said}: {err}")


def main():
    os.environ.pop("MALLOC_PERTURB_", None)  # meson's; it touches memory that nobody uses
    verbose = sys.argv[1] == "-v"
    steady, *command = sys.argv[1 + verbose:]
    enter_own()
    recorder = Recorder()
    with tempfile.NamedTemporaryFile(prefix="gshmem-test-") as file:
        file.write(bytes(24))
        file.flush()
        job = Job(file.name, steady, command)
        job.wait(lambda: 0 < len(processes_with(file.name)) == job.word(2), "start")
        pes = [PE(pid) for pid in processes_with(file.name)]
        check(all(pe.ports for pe in pes), "a PE listens at no port")
        recorded = recorder.take()
        if not recorded:
            print("no greeting was recorded (it needs root), so none is said again")
        for _, first, proof in recorded:
            check(len(proof) == PROOF, f"the hello {first} was followed by no proof")
        nonces = [first[24:56] for _, first, _ in recorded]
        check(len(set(nonces)) == len(nonces), "two streams have the same nonce")
        job.ask(1)
        job.goes_on("before")
        before = [(pe.memory(), pe.descriptors()) for pe in pes]
        busiest = attack(job, pes, recorded, verbose)
        job.wait(lambda: all(pe.descriptors() <= d for pe, (_, d) in zip(pes, before)),
                 "descriptors stay open")
        for pe, (memory, _), most in zip(pes, before, busiest):
            for now, limit in ((most, PEAK), (pe.memory(), GROWTH)):
                check(now < memory + limit, f"a PE of {memory >> 10} KiB has grown to {now >> 10} KiB")
        job.ask(2)
        out, err = job.process.communicate(timeout=100)
    check(job.process.returncode == 0, f"status {job.process.returncode}: {err}")
    check("steady: " in out, f"the job did not end well: {out}")
    check_lines(err, pes)
    if verbose:
        print(out + err, before, busiest, [h for h in recorded])
    sys.exit(1 if failures else 0)


main()
