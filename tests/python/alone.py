"""Processes for tests: each in a session of its own, so that nothing is left of a test that fails."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

from gshmem._library import program

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}/python", "PYTHONFAULTHANDLER": "1"}
ENVIRONMENT.pop(
    "PYTHONUNBUFFERED", None
)  # it would write a line in two parts, between which others write
HEAD = "import gshmem, numpy as np, os, signal, sys, threading, time\n"
_started: list[subprocess.Popen] = []


def begin(line, env=None, **more):
    """Starts a process whose Ctrl-C works, also where this one ignores it, as in the background of
    a shell."""
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **more}
    process = subprocess.Popen(
        line,
        env={**ENVIRONMENT, **(env or {})},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **more,
    )
    _started.append(process)
    return process


def end_all():
    """Ends what tests have started and not waited for."""
    while _started:
        process = _started.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(line, timeout=150, **more):
    """What subprocess.run does; a process that takes longer is ended, and the test fails."""
    process = begin(line, **more)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_all()
        out, _ = process.communicate()
        raise AssertionError(f"{line[-1]} takes more than {timeout} s:\n{out}") from None
    return subprocess.CompletedProcess(line, process.returncode, out, err)


def python(text, *options, wait=True, **more):
    """Runs a program, under gshmemrun if there are options for it."""
    line = [sys.executable, "-c", HEAD + textwrap.dedent(text)]
    if options:
        line = [program("gshmemrun"), *options, *line]
    return (run if wait else begin)(line, **more)


def passes(text, *options, **more):
    done = python(text, *options, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def where():
    """The path of gshmem-where, for which program() does not look, in the build tree."""
    return f"{os.path.dirname(os.environ['LIBGSHMEM'])}/runtime/where/gshmem-where"


def is_inside(pid, call):
    """Whether PE 0, which has this pid, waits in a call of the library, as gshmem-where says."""
    said = run([where(), pid]).stdout
    return re.search(rf"^\s*PEs? 0\b.*: in {call}\b", said, re.MULTILINE) is not None


def wait_until(condition, process, seconds=100):
    """Until a condition holds, while the process lives."""
    limit = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None or time.monotonic() > limit:
            end_all()
            raise AssertionError(process.communicate()[0])
        time.sleep(0.02)
