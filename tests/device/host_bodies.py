#!/usr/bin/env python3
"""What host code does by a name that kernels have, too: it calls the library, which knows how to reach GPU memory. A body
that loads or stores by itself works on the host device, and crashes where the heap is GPU memory.

    host_bodies.py FOLDER…    with headers that have bodies GSHMEM_RETURN(in_kernel, on_host)"""

import glob
import os
import re
import sys

CALLS_LIBRARY = re.compile(r"gshmem_on_host::|gshmem_path_\w+\(|gshmem_host_g\(")  # the last is a wrapper of gshmem_path_g


def arguments(text, at):
    """The two arguments that begin at `at`, behind the opening parenthesis. A comma of a template ends none, as those stand in
    parentheses of their own: it is a macro."""
    depth, parts, begin = 0, [], at
    for i in range(at, len(text)):
        c = text[i]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return parts + [text[begin:i]]
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return parts


def main():
    bodies = wrong = 0
    for path in (p for folder in sys.argv[1:] for p in sorted(glob.glob(os.path.join(folder, "*.h")))):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for found in re.finditer(r"^(?!#).*\bGSHMEM_RETURN\(", text, re.MULTILINE):
            bodies += 1
            on_host = ",".join(arguments(text, found.end())[1:])
            if not CALLS_LIBRARY.search(on_host):
                line = text.count("\n", 0, found.start()) + 1
                print(f"{path}:{line}: the host's body does not call the library: {' '.join(on_host.split())}")
                wrong += 1
    if not bodies:
        print("no bodies found")
    return 1 if wrong or not bodies else 0


if __name__ == "__main__":
    sys.exit(main())
