"""A kernel of Triton or Numba on CPU threads: its PTX is loaded by the driver's API of the host device.

    python -m gshmem.run -n 2 python tests/ptx/foreign/kernel.py tests/ptx/foreign/triton_ring.ptx ring

The kernel has the parameters (to, from, signal, n): each PE puts me * 1000 + i to its right neighbour,
with a signal, waits for its left one's, and adds a half. docs/python-kernels.md says how the file is made.
"""

import ctypes
import os
import sys

import gshmem
from gshmem._library import _opened as LIBRARY  # libgshmem.so, as the package has found it

N, THREADS = 200, 128


def host_device():
    """libgshmem_host.so, installed beside libgshmem.so or in the same build tree."""
    folder = os.path.dirname(os.path.realpath(LIBRARY._name))
    for place in ("libgshmem_host.so.0", "device/host/libgshmem_host.so.0"):
        if os.path.exists(os.path.join(folder, place)):
            return ctypes.CDLL(os.path.join(folder, place))
    return ctypes.CDLL("libgshmem_host.so.0")


def check(what, status):
    if status:
        sys.exit(f"{what}: error {status}")


def parameters_of(cuda, function):
    """How many bytes each parameter has."""
    found, offset, size = [], ctypes.c_size_t(), ctypes.c_size_t()
    while cuda.cuFuncGetParamInfo(function, ctypes.c_size_t(len(found)), ctypes.byref(offset), ctypes.byref(size)) == 0:
        found.append(size.value)
    return found


def launch(cuda, function, arguments):
    """Triton's kernels have parameters behind the program's, which are zero here."""
    missing = len(parameters_of(cuda, function)) - len(arguments)
    values = list(arguments) + [ctypes.c_uint64(0)] * missing
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
    check("cuLaunchKernel", cuda.cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, None, pointers, None))
    check("cuCtxSynchronize", cuda.cuCtxSynchronize())


def main(path, name):
    cuda, module, function = host_device(), ctypes.c_void_p(), ctypes.c_void_p()
    with gshmem.init() as job:
        to, from_ = gshmem.zeros(N, "float32"), gshmem.zeros(N, "float32")
        signal = gshmem.zeros(1, "uint64")
        check("cuModuleLoad", cuda.cuModuleLoad(ctypes.byref(module), path.encode()))
        check("cuModuleGetFunction", cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        check("gshmem_cumodule_init", LIBRARY.gshmem_cumodule_init(module))
        addresses = [ctypes.c_uint64(a.ctypes.data) for a in (to, from_, signal)]
        launch(cuda, function, addresses + [ctypes.c_uint32(N)])
        left = (job.my_pe - 1) % job.n_pes
        wanted = [left * 1000 + i + 0.5 for i in range(N)]
        if to.tolist() != wanted:
            sys.exit(f"PE {job.my_pe} has {to[:4]} … instead of {wanted[:4]} …")
        print(f"PE {job.my_pe} has what PE {left} put: {to[0]} … {to[-1]}")
        gshmem.barrier()
        check("gshmem_cumodule_finalize", LIBRARY.gshmem_cumodule_finalize(module))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
