"""Starts jobs under gshmemrun, and sees every process of them, wherever it has gone."""

import os
import signal
import subprocess
import sys
import time
import uuid

GSHMEMRUN = os.environ.get("GSHMEM_TEST_RUN") or os.path.join(
    os.environ["GSHMEM_TEST_BUILD"], "bootstrap", "run", "gshmemrun")
MARK = "GSHMEM_TEST_JOB"


class Process:
    def __init__(self, pid):
        self.pid = pid
        with open(f"/proc/{pid}/stat") as f:
            text = f.read()
        self.name = text[text.index("(") + 1:text.rindex(")")]
        rest = text[text.rindex(")") + 2:].split()
        self.state, self.parent = rest[0], int(rest[1])


class Job:
    """A job marked in its environment, which everything that it starts inherits."""

    def __init__(self, *arguments, stdin=subprocess.DEVNULL, environment=None, **more):
        self.mark = f"{MARK}={uuid.uuid4()}"
        name, value = self.mark.split("=")
        env = dict(os.environ, **(environment or {}))
        env[name] = value
        self.begun = time.monotonic()
        self.process = subprocess.Popen([GSHMEMRUN, *map(str, arguments)], stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=env, **more)

    def processes(self):
        """Those that live; zombies have ended."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as f:
                    if self.mark.encode() in f.read().split(b"\0"):
                        process = Process(int(entry))
                        if process.state not in "ZX":
                            found.append(process)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
        return found

    def named(self, name):
        return [p for p in self.processes() if p.name.startswith(name)]

    def wait_for(self, condition, what, seconds=60):
        """Until condition(processes) holds."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            found = self.processes()
            if condition(found):
                return found
            time.sleep(0.01)
        self.give_up(f"never saw {what}")

    def end(self, seconds=60):
        """(status, output, errors); the status is negative if gshmemrun died of a signal."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.give_up(f"gshmemrun has not ended within {seconds} s")
        return self.process.returncode, out, err

    def left(self, seconds=20):
        """What lives of the job after so many seconds, or sooner if nothing does."""
        limit = time.monotonic() + seconds
        while True:
            found = self.processes()
            if not found or time.monotonic() > limit:
                return found
            time.sleep(0.01)

    def clean_up(self):
        for process in self.processes():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def give_up(self, why):
        why += f"; of it live {[(p.pid, p.name, p.state) for p in self.processes()]}"
        self.clean_up()
        out, err = self.process.communicate()
        print(f"{why}\noutput:\n{out}\nerrors:\n{err}")
        sys.exit(1)


failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print(f"FAILED: {what[:2000]}")


def check_end(job, status, what, text="", seconds=60):
    """That a job ends so, says so, and leaves nothing."""
    got, out, err = job.end(seconds)
    check(got == status, f"{what}: status {got}, expected {status}; it said {err!r}")
    check(text in err, f"{what}: {text!r} is not in {err!r}")
    left = job.left()
    check(not left, f"{what}: left {[(p.pid, p.name) for p in left]}")
    job.clean_up()
    return out, err


def finish():
    sys.exit(1 if failures else 0)
