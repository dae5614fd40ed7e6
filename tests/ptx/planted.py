"""An error in each row of the table, and whether a case of the row finds it.

The module is translated with the wrong table, and the library finds it by the PTX, as it does
for programs that nvcc made.
"""

import copy
import os
import re
import sys
import tempfile

from host_code import HostCode
from machine import HEADER, first_mistake, kernel, translator

sys.path.insert(0, translator())
import build  # pylint: disable=wrong-import-position
import module as ptx  # pylint: disable=wrong-import-position
import table  # pylint: disable=wrong-import-position
from patterns import Table  # pylint: disable=wrong-import-position

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
        wrong = copy.copy(row)
        wrong.code = wrong_code(row)
        rows.append(wrong)
    return Table(rows)


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
    code, unknown, _, _ = ptx.translate(text.encode(), "planted.ptx")
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
        if not build.build_library(source, so_file, library, loaded=False):
            sys.exit("the C does not compile")
        machine = HostCode(library, text.encode(), so_file)
        found, rows = set(), Table(table.ROWS)
        for i, case in enumerate(cases):
            if first_mistake(case, machine.compute(None, i, case)):
                found |= {rows.find(part.split()[0])[0].pattern for part in case.text.split(";")}
    missed = [row.pattern for row in table.ROWS if row.pattern not in found]
    for pattern in missed:
        print(f"{pattern}: the cases do not find an error that was planted in this row")
    print(f"{len(table.ROWS)} rows, an error in each: {len(missed)} are not found")
    return 1 if missed else 0
