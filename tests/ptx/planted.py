"""An error in each row of the table, and whether a case of the row finds it.

The module is translated with the wrong table, and the library finds it by the PTX, as it does
for programs that nvcc made.
"""

import ctypes
import os
import re
import struct
import sys
import tempfile

from machine import HEADER, Machine, first_mistake, kernel, translator

sys.path.insert(0, translator())
import build  # pylint: disable=wrong-import-position
import module as ptx  # pylint: disable=wrong-import-position
import table  # pylint: disable=wrong-import-position
from patterns import Row, Table  # pylint: disable=wrong-import-position

# The first that changes a row's text is planted there.
ERRORS = [
    (" + ", " - "),
    (" - ", " + "),
    (" & ", " | "),
    (" | ", " & "),
    (" ^ ", " | "),
    (" * ", " + "),
    (" < ", " > "),
    (" > ", " < "),
    ("~a", "a"),
    ("-a", "a"),
    ("!a", "a"),
    (" ? a : b", " ? b : a"),
    (" == 0", " != 0"),
    ("(b, a)", "(a, b)"),
    ("1.0f / ", ""),
    ("1.0 / ", ""),
]


def wrong_code(row):
    """The row's code with an error."""
    if callable(row.code):

        def off_by_one(emitter, statement, found):
            right = emitter.write
            emitter.write = lambda op, type_, text: right(
                op, type_, f'({text}) {"== 0" if type_ == "pred" else "+ 1"}'
            )
            try:
                return row.code(emitter, statement, found)
            finally:
                emitter.write = right

        return off_by_one
    for right, wrong in ERRORS:
        if right in row.code:
            return row.code.replace(right, wrong, 1)
    letters = re.findall(r"(?<![\w.])([a-e])(?!\w)", row.code)
    if len(set(letters)) > 1:  # an operand in the place of another
        return re.sub(rf"(?<![\w.]){letters[1]}(?!\w)", letters[0], row.code)
    return f"{row.code} + 1"


def wrong_table():
    rows = []
    for row in table.ROWS:
        wrong = Row(row.pattern, "", wrong_code(row))
        wrong.operands = row.operands
        rows.append(wrong)
    return Table(rows)


def fat_binary(text):
    payload = text.encode() + b"\0" * (-len(text) % 8 + 8)
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


class Planted(Machine):
    """The library, with a module that was translated by a wrong table."""

    def begin(self, text, so_file):
        self.module = ctypes.CDLL(so_file)  # its constructor makes it known
        self.fat = fat_binary(text)
        self.wrapper = Wrapper(0x466243B1, 1, self.fat, None)
        register = self.cuda["__cudaRegisterFatBinary"]
        register.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(register(ctypes.byref(self.wrapper)))

    def function(self, module, name):
        stub = ctypes.c_void_p(4096 + int(name[1:]))  # any address: a kernel is known by it
        self.cuda["__cudaRegisterFunction"](
            self.handle, stub, name.encode(), name.encode(), -1, None, None, None, None, None
        )
        return stub

    def launch(self, function, grid, block, arguments, shared=0):
        values = [
            (
                a
                if hasattr(a, "value") and not hasattr(a, "_length_")
                else ctypes.c_uint64(ctypes.addressof(a))
            )
            for a in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
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


class MixedTable:
    """The wrong rows for instructions under test, the right ones for what is around them."""

    def __init__(self, lines):
        self.wrong, self.right, self.lines, self.line = wrong_table(), ptx.TABLE, lines, 0

    def find(self, opcode):
        return (self.wrong if self.line in self.lines else self.right).find(opcode)


def translate_wrongly(text, lines):
    """The C of the module, with wrong rows in the given lines."""
    mixed = MixedTable(lines)
    instruction = ptx.ModuleEmitter.instruction

    def follow(emitter, statement):
        mixed.line = statement.line
        emitter.table = mixed
        return instruction(emitter, statement)

    ptx.ModuleEmitter.instruction = follow
    code, unknown, _, _ = ptx.translate(text, "planted.ptx")
    if unknown:
        sys.exit(f"unknown: {unknown[:3]}")
    return code


def run_planted(library, cases):
    """Prints the rows whose error no case finds."""
    text, lines = HEADER, {}
    for i, case in enumerate(cases):
        before = text.count("\n")
        one = kernel(i, case)
        first = next(
            n
            for n, line in enumerate(one.split("\n"))
            if line.strip().startswith(case.text.split()[0] + " ") and "%d" in line
        )
        for n in range(case.text.count("\n") + 1):
            lines[before + first + n + 1] = i
        text += one
    with tempfile.TemporaryDirectory() as folder:
        source, so_file = os.path.join(folder, "planted.c"), os.path.join(folder, "planted.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write(translate_wrongly(text, lines))
        if not build.build_library(source, so_file, library):
            sys.exit("the C does not compile")
        machine = Planted(library)
        machine.begin(text, so_file)
        found, rows = set(), Table(table.ROWS)
        for i, case in enumerate(cases):
            if first_mistake(case, machine.compute(None, i, case)):
                found |= {rows.find(part.split()[0])[0].pattern for part in case.text.split(";")}
    missed = [row.pattern for row in table.ROWS if row.pattern not in found]
    for pattern in missed:
        print(f"{pattern}: the cases do not find an error that was planted in this row")
    print(f"{len(table.ROWS)} rows, an error in each: {len(missed)} are not found")
    return 1 if missed else 0
