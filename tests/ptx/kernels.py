#!/usr/bin/env python3
"""Kernels of several threads: memory, barriers, warps, names. Each gives what its case says.

kernels.py LIBRARY
kernels.py LIBRARY --lock-step     the lanes of a warp run in lock step
"""

import ctypes
import os
import sys
import threading

from kernels_async import KERNELS as ASYNC
from kernels_barriers import KERNELS as BARRIERS
from kernels_functions import KERNELS as FUNCTIONS
from kernel import NOT_IN_STEP
from kernels_lanes import KERNELS as LANES
from kernels_matrix import KERNELS as MATRIX
from kernels_memory import KERNELS as MEMORY
from kernels_names import KERNELS as NAMES
from kernels_warps import KERNELS as WARPS
from machine import HEADER, Machine

KERNELS = NAMES + BARRIERS + FUNCTIONS + ASYNC + LANES + MATRIX + MEMORY + WARPS
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


def main(library, lock_step):
    os.environ["GSHMEM_PTX_WARPS"] = "lockstep" if lock_step else "independent"
    machine, kernels = Machine(library), [k for k in KERNELS if k.wanted(lock_step) != NOT_IN_STEP]
    loaded = machine.load(HEADER + "".join(kernel.text() for kernel in kernels))
    wrong = 0
    for kernel in kernels:
        found = results(machine, loaded, kernel)
        want = kernel.wanted(lock_step)
        if (found is None) != (want is None):
            sys.exit(f"{kernel.name}: the launch {'failed' if found is None else 'did not fail'}")
        if found is None:
            machine.cuda.cudaDeviceReset()
            continue
        for thread, result in enumerate(found):
            wanted = want(thread)
            if wanted is not None and result != wanted:
                print(f"{kernel.name}: thread {thread} has {result:#x} instead of {wanted:#x}")
                wrong += 1
                break
    print(f"{len(kernels)} kernels, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] == ["--lock-step"]))
