"""What Python adds to a call: medians of small and large puts and gets, beside a call of nothing by
ctypes, and beside a memmove. The figures decide nothing.

    python -m gshmem.run -n 2 python/perf.py"""

import ctypes
import statistics
import time

import gshmem
import numpy as np
from gshmem._library import lib


def nanoseconds(function, *arguments, calls):
    """The median of 15 rounds, for one call."""
    rounds = []
    for _ in range(15):
        begin = time.perf_counter_ns()
        for _ in range(calls):
            function(*arguments)
        rounds.append((time.perf_counter_ns() - begin) / calls)
    return statistics.median(rounds)


def empty():
    pass


with gshmem.init():
    me, n = gshmem.my_pe(), gshmem.n_pes()
    a, b = gshmem.zeros(1), gshmem.zeros(1 << 17)
    small, large, other = np.zeros(1), np.zeros(1 << 17), (me + 1) % n
    strided, wide = b[::2], np.zeros(1 << 16)
    if me == 0:
        nothing = nanoseconds(lib.gshmem_initialized, calls=20000)
        rows = [("ctypes call of nothing", nothing)]
        address, source = a.ctypes.data, small.ctypes.data
        raw = nanoseconds(lib.gshmem_path_put, 1, address, source, 8, other, 0, calls=20000)
        whole = (1, b.ctypes.data, large.ctypes.data, 1 << 20, other, 0)
        rows += [
            ("Python call of nothing", nanoseconds(empty, calls=20000)),
            ("the C put of 8 B by ctypes", raw),
            ("put of 8 B", nanoseconds(gshmem.put, a, small, other, calls=20000)),
            ("get of 8 B", nanoseconds(gshmem.get, small, a, other, calls=20000)),
            ("atomic_fetch_add", nanoseconds(gshmem.atomic_fetch_add, a, 1, other, calls=5000)),
            ("quiet", nanoseconds(gshmem.quiet, calls=5000)),
            ("put of 1 MiB", nanoseconds(gshmem.put, b, large, other, calls=50)),
            ("the C put of 1 MiB by ctypes", nanoseconds(lib.gshmem_path_put, *whole, calls=50)),
            ("put of 512 KiB, strided", nanoseconds(gshmem.put, strided, wide, other, calls=20)),
            ("memmove of 1 MiB", nanoseconds(ctypes.memmove, *whole[1:4], calls=50)),
        ]
        for what, ns in rows:
            print(f"{what:38} {ns:12.0f} ns")
    gshmem.barrier()
