"""Runs cases on the host device: a module of PTX with a kernel for each, loaded by the driver's
API."""

import ctypes
import os
import subprocess
import sys

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
NAMES = "abce"
THREADS = 256


def kernel(number, case):
    """PTX of the kernel that computes a case for each row of operands."""
    lines = [
        f".visible .entry k{number}(.param .u64 from, .param .u64 to, .param .u32 rows)",
        "{",
        "    .reg .pred %past;",
        "    .reg .b32 %t<8>;",
        "    .reg .b64 %at<8>;",
    ]
    registers = {name: f"%{name}" for name in NAMES[: len(case.inputs)]}
    for name, bits in zip(NAMES, case.inputs):
        lines.append(f'    .reg .{"pred" if bits == 1 else f"b{bits}"} %{name};')
    lines.append(f'    .reg .{"pred" if case.output == 1 else f"b{case.output}"} %d;')
    lines += [
        "    mov.u32 %t0, %ctaid.x;",
        "    mov.u32 %t1, %ntid.x;",
        "    mov.u32 %t2, %tid.x;",
        "    mad.lo.s32 %t3, %t0, %t1, %t2;",
        "    ld.param.u32 %t4, [rows];",
        "    setp.ge.u32 %past, %t3, %t4;",
        "    @%past ret;",
        "    ld.param.u64 %at0, [from];",
        "    ld.param.u64 %at1, [to];",
        f"    mul.wide.u32 %at2, %t3, {8 * len(case.inputs)};",
        "    add.s64 %at2, %at0, %at2;",
        "    mul.wide.u32 %at3, %t3, 8;",
        "    add.s64 %at3, %at1, %at3;",
    ]
    for i, (name, bits) in enumerate(zip(NAMES, case.inputs)):
        if bits == 1:
            lines += [
                f"    ld.global.u32 %t5, [%at2+{8 * i}];",
                f"    setp.ne.u32 %{name}, %t5, 0;",
            ]
        else:
            lines.append(f"    ld.global.b{bits} %{name}, [%at2+{8 * i}];")
    lines.append("    " + case.text.format(d="%d", **registers) + ";")
    if case.output == 1:
        lines += ["    selp.u32 %t6, 1, 0, %d;", "    st.global.u32 [%at3], %t6;"]
    else:
        lines.append(f"    st.global.b{case.output} [%at3], %d;")
    return "\n".join(lines + ["    ret;", "}", ""])


def pointers_to(arguments):
    """The array that a launch takes, and what it points to. arguments: ctypes' numbers, or
    buffers, whose addresses are given."""
    values = [
        (
            a
            if hasattr(a, "value") and not hasattr(a, "_length_")
            else ctypes.c_uint64(ctypes.addressof(a))
        )
        for a in arguments
    ]
    return (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values]), values


class Machine:
    """The host device's library, by ctypes."""

    def __init__(self, library):
        self.cuda = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)

    def load(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        module = ctypes.c_void_p()
        status = self.cuda.cuModuleLoadData(ctypes.byref(module), data + b"\0")
        if status:
            sys.exit(f"cuModuleLoadData returns {status}")
        return module

    def function(self, module, name):
        found = ctypes.c_void_p()
        status = self.cuda.cuModuleGetFunction(ctypes.byref(found), module, name.encode())
        if status:
            sys.exit(f"cuModuleGetFunction of {name} returns {status}")
        return found

    def launch(self, function, grid, block, arguments, shared=0):
        pointers, _values = pointers_to(arguments)
        status = self.cuda.cuLaunchKernel(
            function, grid, 1, 1, block, 1, 1, shared, None, pointers, None
        )
        return status or self.cuda.cuCtxSynchronize()

    def compute(self, module, number, case):
        """What the kernel of a case gives for its data."""
        rows, columns = len(case.data), len(case.inputs)
        from_ = (ctypes.c_uint64 * (rows * columns))(*[value for row in case.data for value in row])
        to = (ctypes.c_uint64 * rows)(*[0xAAAAAAAAAAAAAAAA] * rows)
        status = self.launch(
            self.function(module, f"k{number}"),
            (rows + THREADS - 1) // THREADS,
            THREADS,
            [from_, to, ctypes.c_uint32(rows)],
        )
        if status:
            return None
        mask = (1 << max(case.output, 1)) - 1 if case.output > 1 else 1
        return [value & mask for value in to]


def first_mistake(case, results):
    """None, or (operands, result, what was wanted)."""
    if results is None:
        return ((), "the launch failed", "")
    for row, result in zip(case.data, results):
        wanted = case.want(*row)
        if wanted is None or result == wanted or (case.close and case.close(result, wanted)):
            continue
        return (row, result, wanted)
    return None


def translator():
    """The folder of the translator."""
    here = os.path.dirname(os.path.realpath(__file__))
    return os.path.join(here, "../../device/host/ptx/translate")


def run_translator(path, output):
    return subprocess.run(
        [os.path.join(translator(), "gshmem-ptx"), path, output],
        check=False,
        capture_output=True,
        text=True,
    )
