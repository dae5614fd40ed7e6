"""Places in the sources that call the system, and which of them have been failed: for tests/nth/run and
tests/simulation/nth, which keep one list."""
import collections
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
ROOMS = ("runtime", "transport/tcp", "transport/verbs", "transport", "bootstrap", "device/cuda", "device")
# The seam calls the system for its callers, who are the places.
NO_PLACES = ("runtime/base/system.h", "runtime/base/system_calls.h", "device/cuda/driver.h")

# As sources write them; what a macro of these names calls is one place.
CALLS = re.compile(
    r"(?:(?<![\w.>])((?:m|c|re)alloc|aligned_alloc|strdup|asprintf|open_memstream|mmap|mremap|memfd_create|ftruncate|fallocate|fcntl|"
    r"open|fopen|opendir|socketpair|socket|bind|connect|accept4|send|recv|sendmsg|recvmsg|p?poll|getsockopt|"
    r"setsockopt|pipe2|fork|signalfd|eventfd|epoll_create1|epoll_ctl|epoll_wait|timerfd_create|timerfd_settime|"
    r"read|write|pread|pwrite|process_vm_readv|getrandom|getifaddrs|getaddrinfo|pthread_create|"
    r"system_(?:socket|bind|connect|accept|send|recv|sendmsg|recvmsg|setsockopt|getsockopt|poll|epoll_ctl|"
    r"epoll_wait|timerfd_settime|random)|ibv_(?!wc_status_str|get_device_name|ack|free|close|de)\w+"
    r")|(?:->|\.)(driver\.(?!\w*(?:free|destroy|release|unmap|close|unload|unregister))\w+))\(")
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def is_place(path):
    return path.startswith(ROOMS) and path not in NO_PLACES


def places_of_sources():
    """Each call: path, line, name."""
    found = []
    for room in ("runtime", "transport", "bootstrap", "device"):
        for folder, _, files in sorted(os.walk(os.path.join(ROOT, room))):
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                if not name.endswith((".c", ".h")) or not is_place(path):
                    continue
                with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                    text = NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), f.read())
                for number, line in enumerate(text.split("\n"), 1):
                    found += [(path, number, m[1] or m[2]) for m in CALLS.finditer(line)]
    return found


def in_tree(build, file):
    """The path of a source in this tree. An object from a compiler's cache names the tree that it was first compiled in."""
    path = os.path.relpath(os.path.realpath(os.path.join(build, file)), ROOT)
    parts = os.path.normpath(os.path.join(build, file)).split(os.sep)
    rest = (os.path.join(*parts[i:]) for i in range(1, len(parts)))
    return path if not path.startswith("..") else next((p for p in rest if os.path.isfile(os.path.join(ROOT, p))), path)


def lines_of(build, objects):
    """objects: {path of an object: addresses that calls return to}. For each (object, address) the lines of the call,
    innermost first: a function that was inlined has a line in each of its callers, too. The byte before the address
    belongs to the call."""
    found = {}
    for path, addresses in objects.items():
        ordered = sorted(addresses)
        text = subprocess.run(["addr2line", "-a", "-i", "-e", path], input="".join(f"{a - 1:#x}\n" for a in ordered),
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        at = None
        for line in text.split("\n"):
            if line.startswith("0x"):
                at = (path, int(line, 16) + 1)
                found[at] = []
                continue
            file, _, number = line.split(" ")[0].rpartition(":")
            if number.isdigit():
                found[at].append((in_tree(build, file), int(number)))
    return found


def unreachable():
    """Places that nothing fails, with the reason: {(path, name or ""): reason}."""
    reasons = {}
    with open(os.path.join(HERE, "not-failed"), encoding="utf-8") as f:
        for line in f:
            line = line.split("#")[0].strip()
            if line:
                place, _, reason = line.partition("  ")
                path, _, call = place.partition(" ")
                reasons[(path, call)] = reason.strip()
    return reasons


def report(hit, shows):
    """hit: the lines that have been failed. Prints the share of each room, and what was not failed."""
    rooms, missed = collections.defaultdict(lambda: [0, 0, 0]), []
    reasons = unreachable()
    for path, number, call in places_of_sources():
        room = next(r for r in ROOMS if path.startswith(r))
        # a call over several lines is known by any of them
        was = any((path, n) in hit for n in range(number - 1, number + 4))
        reason = reasons.get((path, call)) or reasons.get((path, ""))
        rooms[room][0] += was
        rooms[room][1] += 1
        rooms[room][2] += bool(reason and not was)
        if not was:
            missed.append(f"{path}:{number}: {call}" + (f": {reason}" if reason else ""))
    for room, (some, all_, named) in sorted(rooms.items()):
        print(f"{room:16} {some:3} of {all_:3} places, {100 * some / max(all_, 1):.0f} %"
              + (f"; {named} more are named in tests/nth/not-failed" if named else ""))
    if shows:
        print("\n".join(missed))
