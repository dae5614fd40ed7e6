#!/usr/bin/env python3
"""A product of matrices, tl.dot, that Triton compiled to mma.sync and ldmatrix.

dot.py LIBRARY PTX
"""

import ctypes
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from machine import Machine  # pylint: disable=wrong-import-position

N = 32  # rows and columns
THREADS = 128
SHARED = 8 * N * N


def half(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def main(library, path):
    machine = Machine(library)
    a = [[(7 * i + 3 * j + i * j) % 11 - 5 for j in range(N)] for i in range(N)]
    b = [[(5 * i + 2 * j + i * j) % 13 - 6 for j in range(N)] for i in range(N)]
    halves = [(ctypes.c_uint16 * (N * N))(*[half(v) for row in m for v in row]) for m in (a, b)]
    result = (ctypes.c_float * (N * N))()
    with open(path, encoding="utf-8") as file:
        function = machine.function(machine.load(file.read()), "dot")
    more = [ctypes.c_uint64(0)] * 2  # memory of Triton's own, which this kernel does not use
    status = machine.launch(function, 1, THREADS, [*halves, result, *more], SHARED)
    if status:
        sys.exit(f"the launch returns {status}")
    for i in range(N):
        for j in range(N):
            wanted = sum(a[i][k] * b[k][j] for k in range(N))
            if result[i * N + j] != wanted:
                sys.exit(f"row {i}, column {j}: {result[i * N + j]} instead of {wanted}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
