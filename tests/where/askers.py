#!/usr/bin/env python3
"""10,000 askers of a PE, most of whom want nothing good, harm nothing: the PE's descriptors, threads and
memory are as before, and who asks then gets the report.

    askers.py PROGRAM"""

import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from hangs import BUILD, HERE, WAYS, end, is_right, process_of, where  # noqa: E402

ASKERS = 10000
with open(f"{HERE}/../../runtime/where/record.h", encoding="utf-8") as header:
    MAGIC, VERSION = (int(value, 0) for value in re.findall(r"WHERE_(?:MAGIC|VERSION) = (0x\w+?|\d+)u?,", header.read()))
QUESTIONS = [struct.pack("IIII", MAGIC, VERSION, question, 0) for question in (1, 2, 3, 4, 99)]
SAID = [b"", b"x" * 16, QUESTIONS[0][:7], struct.pack("IIII", MAGIC, VERSION + 1, 2, 0), *QUESTIONS]
SECONDS = 100


def address_of(pid):
    """The name at which the process listens."""
    for i in range(4096):
        name = f"\0gshmem-where-{os.geteuid()}-{i}"
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(name)
            except OSError:
                continue
            peer = struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        if peer == pid:
            return name
    raise SystemExit(f"process {pid} listens nowhere")


def held(pid):
    """Descriptors, threads, and KiB of memory of its own."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        status = dict(line.split(":", 1) for line in file)
    return len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]), int(status["RssAnon"].split()[0])


def least(pid):
    """What it holds between two askers, of whom the last has only just gone, and other jobs' come meanwhile."""
    looks = []
    for _ in range(40):
        looks.append(held(pid))
        time.sleep(0.02)
    return tuple(map(min, zip(*looks)))


def settled(pid, before):
    """What it holds, once it has come back to what it held before; at the latest after a while."""
    limit = time.monotonic() + 60
    while held(pid)[:2] != before[:2] and time.monotonic() < limit:
        time.sleep(0.05)
    return held(pid)


def ask(name, i):
    """Says something, and goes without having heard the answer. An asker who says too little costs the PE a
    second, unless it goes."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(name)
        try:
            s.sendall(SAID[i % len(SAID)])
        except (BrokenPipeError, ConnectionResetError):
            pass


def main(program):
    last, some = WAYS["sleep"]
    with tempfile.TemporaryDirectory() as directory:
        job = subprocess.Popen([f"{BUILD}/bootstrap/run/gshmemrun", "-n", "3", program, "sleep", directory],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        pids = [process_of(directory, pe) for pe in range(3)]
        try:
            where(str(pids[0]))  # so that the PE has what it needs to answer
            name = address_of(pids[1])
            before = least(pids[1])
            for i in range(ASKERS):
                ask(name, i)
            after = settled(pids[1], before)
            text, limit = "", time.monotonic() + SECONDS
            while time.monotonic() < limit and not is_right(text, last, some, "run"):
                text = where(str(pids[0]))
        finally:
            end(job, pids)
    if not is_right(text, last, some, "run"):
        raise SystemExit(f"after {ASKERS} askers the report is\n{text}")
    if after[:2] != before[:2] or after[2] > before[2] + 4096:
        raise SystemExit(f"descriptors, threads and KiB: {before} before {ASKERS} askers, {after} after")


main(*sys.argv[1:])
