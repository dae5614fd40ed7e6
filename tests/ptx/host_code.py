"""What the host code that nvcc makes does with a module: it registers a fat binary, and kernels by
their stubs."""

import ctypes
import itertools
import struct

from machine import Machine, pointers_to

STUBS = itertools.count(4096)  # any address: a kernel is known by it


def fat_binary(data):
    payload = data + b"\0" * (-len(data) % 8 + 8)
    entry = struct.pack("<HHIQ", 1, 0x101, 64, len(payload)).ljust(64, b"\0")
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(payload)) + entry + payload


class Dim3(ctypes.Structure):
    """CUDA's dim3."""

    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Wrapper(ctypes.Structure):
    """What nvcc's constructors register."""

    _fields_ = [
        ("magic", ctypes.c_int),
        ("version", ctypes.c_int),
        ("data", ctypes.c_char_p),
        ("file", ctypes.c_void_p),
    ]


class HostCode(Machine):
    """The library, with a module that was translated before."""

    def __init__(self, library, data, so_file=None):
        super().__init__(library)
        if so_file:
            ctypes.CDLL(so_file)  # its constructor makes it known
        self.fat = fat_binary(data)
        self.wrapper = Wrapper(0x466243B1, 1, self.fat, None)
        register = self.cuda["__cudaRegisterFatBinary"]
        register.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(register(ctypes.byref(self.wrapper)))

    def function(self, module, name):
        stub = ctypes.c_void_p(next(STUBS))
        self.cuda["__cudaRegisterFunction"](
            self.handle, stub, name.encode(), name.encode(), -1, None, None, None, None, None
        )
        return stub

    def launch(self, function, grid, block, arguments, shared=0):
        pointers, _values = pointers_to(arguments)
        launch = self.cuda.cudaLaunchKernel
        launch.argtypes = [
            ctypes.c_void_p,
            Dim3,
            Dim3,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ]
        status = launch(
            function,
            Dim3(grid, 1, 1),
            Dim3(block, 1, 1),
            ctypes.cast(pointers, ctypes.c_void_p),
            shared,
            None,
        )
        return status or self.cuda.cudaDeviceSynchronize()
