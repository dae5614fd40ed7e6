#!/usr/bin/env python3
"""Modules: which one a program gets, and that its variables are its own.

modules.py LIBRARY
"""

import ctypes
import os
import sys
import tempfile
import threading

from host_code import HostCode
from machine import HEADER, Machine, pointers_to, translator

sys.path.insert(0, translator())
import build  # pylint: disable=wrong-import-position
import module as ptx  # pylint: disable=wrong-import-position

COUNTER = """
.global .b32 counter = 100;
.visible .entry count(.param .u64 out, .param .u32 more)
{
    .reg .b32 %r<3>;
    .reg .b64 %at;
    ld.param.u32 %r1, [more];
    atom.global.add.u32 %r2, [counter], %r1;
    ld.param.u64 %at, [out];
    st.global.u32 [%at], %r2;
    ret;
}
"""


def count(machine, function, more):
    """The counter's value before `more` was added."""
    out = (ctypes.c_uint32 * 1)(0)
    status = machine.launch(function, 1, 1, [out, ctypes.c_uint32(more)])
    return out[0] if not status else f"error {status}"


def bytes_of_lines():
    """Lines that end with CR and LF, and comments that are no UTF-8."""
    text = HEADER.encode() + b"// caf\xe9 \xff\xfe\n" + COUNTER.encode()
    return text.replace(b"\n", b"\r\n")


def one_text_in_two_files(library):
    """Two files with the same kernels in a common header: each has its own module."""
    _machine = Machine(library)  # which the two are linked with
    data = bytes_of_lines()
    code, _, _, _ = ptx.translate(data, 'a"\\b.ptx')
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "m.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(code)
        for name in "ab":
            output = os.path.join(folder, name + ".so")
            if not build.build_library(source, output, library, loaded=False):
                return ["the C does not compile"]
            ctypes.CDLL(output)
    files = [HostCode(library, data) for _ in range(2)]
    functions = [file.function(None, "count") for file in files]
    return [count(file, f, more) for more in (1, 0) for file, f in zip(files, functions)]


def one_text_loaded_by_threads(library):
    """Each load is a module of its own."""
    machine, loaded = Machine(library), []
    threads = [
        threading.Thread(target=lambda: loaded.append(machine.load(HEADER + COUNTER)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    functions = [machine.function(module, "count") for module in loaded]
    return [count(machine, function, 1) for function in functions]


def bytes_of_all_kinds(library):
    machine = Machine(library)
    loaded = machine.load(bytes_of_lines())
    return [count(machine, machine.function(loaded, "count"), 1)]


def one_text_open_and_loaded(library):
    """A load takes a library that was made of the text before, if nobody has had it, and translates nothing."""
    machine, data = Machine(library), (HEADER + COUNTER + "// open\n").encode()
    module, found = ctypes.c_void_p(), []
    with tempfile.TemporaryDirectory() as folder:
        source, output = os.path.join(folder, "m.c"), os.path.join(folder, "m.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write(ptx.translate(data, "m.ptx")[0])
        if not build.build_library(source, output, library, loaded=False):
            return ["the C does not compile"]
        ctypes.CDLL(output)
    compiler = os.environ.get("CC")
    os.environ["CC"] = "false"
    first = machine.load(data)
    found.append(count(machine, machine.function(first, "count"), 1))
    found.append(machine.cuda.cuModuleLoadData(ctypes.byref(module), data) != 0)
    found.append(machine.cuda.cuModuleUnload(first))
    found.append(machine.cuda.cuModuleLoadData(ctypes.byref(module), data) != 0)
    del os.environ["CC"]
    if compiler:
        os.environ["CC"] = compiler
    again = machine.load(data)
    return found + [count(machine, machine.function(again, "count"), 1)]


def files_of_modules(library):
    """cuModuleLoad: a file of PTX; one that is missing; of GPU code alone; a fat binary that ends early; none at all."""
    machine, module = Machine(library), ctypes.c_void_p()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module")
        for content in (None, b"\x7fELF" + bytes(60), bytes.fromhex("50ed55ba0100100000f0000000000000"), b"", b"none",
                        (HEADER + COUNTER).encode()):
            if content is not None:
                with open(path, "wb") as file:
                    file.write(content)
            found.append(machine.cuda.cuModuleLoad(ctypes.byref(module), path.encode()))
    found.append(machine.cuda.cuModuleLoad(ctypes.byref(module), None))
    return found + [count(machine, machine.function(module, "count"), 1)]


SHARED = """
.extern .shared .align 4 .b8 given[];
.visible .entry both(.param .u64 out)
{
    .shared .align 4 .b8 own[128];
    .reg .b32 %r<8>;
    .reg .b64 %at<3>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, own;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    mov.u32 %r4, given;
    add.u32 %r4, %r4, %r2;
    add.u32 %r5, %r1, 1000;
    st.shared.u32 [%r4], %r5;
    bar.sync 0;
    ld.shared.u32 %r6, [%r3];
    ld.shared.u32 %r7, [%r4];
    mad.lo.u32 %r6, %r6, 10000, %r7;
    ld.param.u64 %at1, [out];
    mul.wide.u32 %at2, %r1, 4;
    add.s64 %at1, %at1, %at2;
    st.global.u32 [%at1], %r6;
    ret;
}
"""


def shared_memory_in_a_graph(library):
    """A launch of a graph has the shared memory of the launch that was captured: the kernel's own and what it was given."""
    machine, out = Machine(library), (ctypes.c_uint32 * 32)()
    stream, graph, launched = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    function = machine.function(machine.load(HEADER + SHARED), "both")
    pointers, _values = pointers_to([out])
    cuda = machine.cuda
    found = [
        cuda.cudaStreamCreate(ctypes.byref(stream)),
        cuda.cudaStreamBeginCapture(stream, 1),
        cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 128, stream, pointers, None),
        cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)),
        cuda.cudaGraphInstantiateWithFlags(ctypes.byref(launched), graph, ctypes.c_ulonglong(0)),
        cuda.cudaGraphLaunch(launched, stream),
        cuda.cudaStreamSynchronize(stream),
    ]
    return [sum(found), list(out) == [10000 * i + 1000 + i for i in range(32)]]


class Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("n", ctypes.c_uint),
    ]


def launches_with_attributes(library):
    """cuLaunchKernelEx: advice, a cluster of one, of two, an event; a grid that cannot be cooperative; the count after."""
    machine = Machine(library)
    function = machine.function(machine.load(HEADER + COUNTER), "count")
    out, found = (ctypes.c_uint32 * 1)(0), []
    pointers, _values = pointers_to([out, ctypes.c_uint32(1)])
    for blocks, *attributes in [
        (1, (2, 1), (3, 2), (4, 1, 1, 1), (6, 1), (8, 0xFFFFFFFF)),
        (1, (4, 2, 1, 1)),
        (1, (7, 0)),
        (1, (99, 0)),
        (1 << 24, (2, 1)),
        (3,),
    ]:
        rows = (Attribute * len(attributes))()
        for row, (number, *values) in zip(rows, attributes):
            row.id = number
            row.value[: len(values)] = values
        config = Config((blocks, 1, 1), (1, 1, 1), 0, None, rows, len(attributes))
        found.append(machine.cuda.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None))
    found.append(machine.cuda.cuLaunchKernelEx(None, function, pointers, None))
    machine.cuda.cuCtxSynchronize()
    return found + [count(machine, function, 0)]


def blocks_of_one_size(library):
    """A kernel for blocks of 4 x 2 threads is not launched with others."""
    machine = Machine(library)
    text = COUNTER.replace("more)\n{", "more)\n.reqntid 4, 2\n{")
    function = machine.function(machine.load(HEADER + text), "count")
    out = (ctypes.c_uint32 * 1)(0)
    pointers, _values = pointers_to([out, ctypes.c_uint32(1)])
    found = []
    for block in [(8, 1, 1), (4, 2, 1), (4, 2, 2)]:
        found.append(machine.cuda.cuLaunchKernel(function, 1, 1, 1, *block, 0, None, pointers, None))
    machine.cuda.cuCtxSynchronize()
    return found + [out[0] >= 100]


def handles_that_are_none(library):
    """A module that was unloaded, or never was one: its functions and variables are not looked for."""
    machine, at = Machine(library), ctypes.c_uint64()
    first, other = machine.load(HEADER + COUNTER), (ctypes.c_uint64 * 8)()
    found = [machine.cuda.cuModuleUnload(first)]
    for module in (first, ctypes.c_void_p(ctypes.addressof(other))):
        found += [
            machine.cuda.cuModuleUnload(module),
            machine.cuda.cuModuleGetFunction(ctypes.byref(at), module, b"count"),
            machine.cuda.cuModuleGetGlobal_v2(ctypes.byref(at), None, module, b"counter"),
        ]
    return found


CASES = {
    shared_memory_in_a_graph: [0, True],
    launches_with_attributes: [0, 801, 801, 801, 720, 0, 1, 104],
    blocks_of_one_size: [1, 0, 1, True],
    handles_that_are_none: [0] + [400] * 6,
    files_of_modules: [301, 801, 200, 200, 200, 0, 1, 100],
    one_text_in_two_files: [100, 100, 101, 101],
    one_text_loaded_by_threads: [100, 100, 100],
    bytes_of_all_kinds: [100],
    one_text_open_and_loaded: [100, True, 0, True, 100],
}


def main(library):
    wrong = 0
    for case, wanted in CASES.items():
        found = case(library)
        if found != wanted:
            print(f"{case.__name__}: {found} instead of {wanted}")
            wrong += 1
    print(f"{len(CASES)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
