"""The library asks the system for time, chance and other processes by runtime/base/system.h alone.

A simulation brings functions of those names (GSHMEM_SIMULATED), and a call that goes past them
would wait for real time, or for a real peer.

Usage: seam.py ROOT"""
import os
import re
import sys

# Folders with what is below them, and single files.
ROOMS = ("bootstrap/uid", "bootstrap/pmi", "runtime", "transport/tcp", "bootstrap/choose.c", "bootstrap/hosts.c",
         "bootstrap/inherited.c", "bootstrap/run/client.c", "bootstrap/single.c", "bootstrap/stream.c")
# The seam itself, and programs, which no simulation runs.
EXCEPT = ("runtime/base/clock.h", "runtime/base/system_calls.h", "runtime/tools", "runtime/where")
INSTEAD = {
    "clock_ns": "clock_gettime clock_getres gettimeofday time",
    "clock_sleep": "nanosleep clock_nanosleep usleep sleep",
    "clock_yield": "sched_yield",
    "clock_pause": "__builtin_ia32_pause _mm_pause",
    "system_random": "getrandom getentropy rand random drand48",
    "system_futex": "SYS_futex",
    "system_socket": "socket socketpair",
    "system_bind": "bind listen getsockname",
    "system_connect": "connect",
    "system_accept": "accept accept4 getpeername",
    "system_send": "send sendto SYS_sendto",
    "system_recv": "recv recvfrom SYS_recvfrom",
    "system_sendmsg": "sendmsg sendmmsg SYS_sendmsg",
    "system_recvmsg": "recvmsg recvmmsg SYS_recvmsg",
    "system_setsockopt": "setsockopt",
    "system_getsockopt": "getsockopt",
    "system_poll": "poll ppoll select pselect",
    "system_epoll_ctl": "epoll_ctl",
    "system_epoll_wait": "epoll_wait epoll_pwait epoll_pwait2",
    "system_timerfd_settime": "timerfd_settime",
}
CALLS = {call: seam for seam, calls in INSTEAD.items() for call in calls.split()}
# Not a member of a struct (a->send), and not a part of a longer name.
CALL = re.compile(r"(?<![\w.>])(" + "|".join(sorted(CALLS, key=len, reverse=True)) + r")\b")
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def code(text):
    """The text with comments and strings as blanks, so that lines keep their numbers."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def calls(text):
    """Each call past the seam: its line and its name."""
    for number, line in enumerate(code(text).split("\n"), 1):
        for found in CALL.finditer(line):
            name = found[1]
            if name.startswith("SYS_") or line[found.end():].lstrip().startswith("("):
                yield number, name


def is_in(path, places):
    return any(path == place or path.startswith(place + "/") for place in places)


def wrong(root):
    lines = []
    for top in sorted({room.split("/")[0] for room in ROOMS}):
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            for file in sorted(files):
                path = os.path.relpath(os.path.join(folder, file), root)
                if not path.endswith((".c", ".h")) or not is_in(path, ROOMS) or is_in(path, EXCEPT):
                    continue
                with open(os.path.join(root, path), encoding="utf-8") as source:
                    text = source.read()
                for number, name in calls(text):
                    lines.append(f"{path}:{number}: {name} goes past the seam: call {CALLS[name]} of "
                                 "runtime/base/system.h, for which a simulation can stand")
    return lines


if __name__ == "__main__":
    lines = wrong(sys.argv[1])
    for line in lines:
        print(line)
    sys.exit(1 if lines else 0)
