#!/usr/bin/env python3
"""Kernels of several threads: memory, barriers, warps, names. Each gives what its case says.

kernels.py LIBRARY
"""

import ctypes
import os
import sys
import threading

from kernels_async import KERNELS as ASYNC
from kernels_barriers import KERNELS as BARRIERS
from kernels_functions import KERNELS as FUNCTIONS
from kernels_names import KERNELS as NAMES
from machine import HEADER, Machine

KERNELS = NAMES + BARRIERS + FUNCTIONS + ASYNC
PATIENCE = 30  # seconds, for one kernel
UNTOUCHED = 0xAAAAAAAA


def give_up(name):
    print(f"{name}: it has not ended after {PATIENCE} s", flush=True)
    os._exit(1)


def results(machine, loaded, kernel):
    """One number of each thread; None: the launch failed."""
    out = (ctypes.c_uint32 * kernel.threads)(*[UNTOUCHED] * kernel.threads)
    timer = threading.Timer(PATIENCE, give_up, [kernel.name])
    timer.start()
    status = machine.launch(machine.function(loaded, kernel.name), 1, kernel.threads, [out])
    timer.cancel()
    return None if status else list(out)


def main(library):
    machine = Machine(library)
    loaded = machine.load(HEADER + "".join(kernel.text() for kernel in KERNELS))
    wrong = 0
    for kernel in KERNELS:
        found = results(machine, loaded, kernel)
        if (found is None) != (kernel.want is None):
            sys.exit(f"{kernel.name}: the launch {'failed' if found is None else 'did not fail'}")
        if found is None:
            machine.cuda.cudaDeviceReset()
            continue
        for thread, result in enumerate(found):
            wanted = kernel.want(thread)
            if wanted is not None and result != wanted:
                print(f"{kernel.name}: thread {thread} has {result:#x} instead of {wanted:#x}")
                wrong += 1
                break
    print(f"{len(KERNELS)} kernels, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
