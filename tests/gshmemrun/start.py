#!/usr/bin/env python3
"""What a PE starts with: its descriptors, limits, signals and CPUs; and what cannot be started."""

import os
import resource
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from jobs import GSHMEMRUN, Job, check, check_end, finish  # noqa: E402


def status_of(*arguments, **more):
    return subprocess.run([GSHMEMRUN, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100,
                          **more)


def state():
    """Nothing of gshmemrun's own shows in a PE but the three descriptors meant for it."""
    for tag in ([], ["--tag-output"]):
        done = status_of("-n", 1, *tag, "sh", "-c", "ls /proc/$$/fd; :")
        got = sorted(int(line.split()[-1]) for line in done.stdout.splitlines())
        check(got == [0, 1, 2, 100, 101, 102],
              f"{tag}: the descriptors of a PE: {done.stdout!r}")
    done = status_of("-n", 1, "grep", "^Sig[BI]", "/proc/self/status")
    mine = subprocess.run(["grep", "^Sig[BI]", "/proc/self/status"], stdout=subprocess.PIPE,
                          text=True).stdout
    check(done.stdout == mine, f"the signals of a PE: {done.stdout!r}, of another: {mine!r}")
    done = status_of("-n", 1, "sh", "-c", "ulimit -Sn",
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (900, 4000)))
    check(done.stdout == "900\n", f"the limit of files of a PE: {done.stdout!r}")


def inherited():
    """What a user opens for the program, the program has; nothing it has is taken from it."""
    with tempfile.TemporaryFile() as file:
        number = file.fileno()
        done = status_of("-n", 2, "sh", "-c", f"echo x >&{number}", pass_fds=[number])
        file.seek(0)
        check(done.returncode == 0 and file.read() == b"x\nx\n", "an inherited descriptor")
    done = status_of("-n", 1, "sh", "-c", "trap '' HUP; kill -HUP $$; echo alive",
                     preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP]))
    check(done.stdout == "alive\n", f"a blocked signal: {done.stdout!r}")


def too_few_files():
    for n, limit in ((1, 64), (1000, 400)):
        done = status_of("-n", n, "true", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (limit, limit)))
        check(done.returncode == 2 and "open files, the limit is" in done.stderr,
              f"a limit of {limit} files: {done.returncode}, {done.stderr!r}")
    done = status_of("-n", 200, "true", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (200, 2000)))
    check(done.returncode == 0, f"a soft limit is raised: {done.returncode}, {done.stderr!r}")


def bad_programs():
    with tempfile.TemporaryDirectory() as directory:
        def program(name, text, mode=0o755):
            path = os.path.join(directory, name)
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, mode)
            return path

        cases = [
            (program("nonsense", "\x01\x02\x03"), 126, "neither a program for this machine nor a"),
            (program("no-interpreter", "#!/no/such/thing\n"), 127, "its interpreter"),
            (program("plain", "#!/bin/sh\n", 0o644), 126, "cannot be executed: Permission denied"),
            (program("elf", "\x7fELF" + "\0" * 60), 126, ""),
        ]
        for path, status, text in cases:
            done = status_of("-n", 2, path)
            check(done.returncode == status and text in done.stderr,
                  f"{path}: {done.returncode}, {done.stderr!r}")
        program("good", "#!/bin/sh\necho good\n")
        for command, env in (("./good", {}), ("good", {"PATH": f"/no/such:{directory}"}),
                             ("good", {"PATH": ":/no/such"})):
            done = status_of("-n", 1, command, cwd=directory, env=dict(os.environ, **env))
            check(done.stdout == "good\n", f"{command} {env}: {done.stderr!r}")
        done = status_of("-n", 1, "plain", env={"PATH": f"{directory}:/usr/bin"})
        check(done.returncode == 126, "what is in PATH, but not executable")


def bound():
    """Each PE to one core, in turn, among those that gshmemrun may use."""
    job = Job("-n", 5, "--bind", "core", sys.executable, "-c",
              "import os; os.write(1, ' '.join(map(str, [os.environ['GSHMEM_RUN_PE'],"
              " *sorted(os.sched_getaffinity(0)), '\\n'])).encode())")
    out, _ = check_end(job, 0, "--bind core")
    cpus = {int(pe): tuple(rest) for pe, *rest in map(str.split, out.splitlines())}
    cores = len(set(cpus.values()))
    allowed = {str(cpu) for cpu in os.sched_getaffinity(0)}
    check(set().union(*cpus.values()) <= allowed, f"bound to {cpus}, allowed are {allowed}")
    check(all(cpus[pe] == cpus[pe % cores] for pe in range(5)), f"in turn: {cpus}")


def many():
    job = Job("-n", 300, "sh", "-c", "echo $GSHMEM_RUN_PE")
    out, _ = check_end(job, 0, "300 PEs", seconds=60)
    check(sorted(map(int, out.split())) == list(range(300)), "each of 300 PEs")


def main():
    state()
    inherited()
    too_few_files()
    bad_programs()
    bound()
    many()
    finish()


main()
