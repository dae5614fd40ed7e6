#!/usr/bin/env python3
"""Each instruction of the table gives what other arithmetic says.

instructions.py LIBRARY            all cases; and every row of the table has one
instructions.py LIBRARY --planted  with an error planted in each row: some case of the row finds it
"""

import sys

from cases_bits import CASES as INTEGER  # with those of cases_integer
from cases_bytes import CASES as BYTES
from cases_convert import CASES as REAL  # with those of cases_real
from machine import HEADER, Machine, first_mistake, kernel, translator

sys.path.insert(0, translator())

from patterns import Table  # pylint: disable=wrong-import-position
import table  # pylint: disable=wrong-import-position

CASES = INTEGER + REAL + BYTES


def opcodes(case):
    """Those of all instructions of a case."""
    return [part.split()[0] for part in case.text.split(";")]


def rows_without_case():
    rows = Table(table.ROWS)
    used = set()
    for case in CASES:
        for opcode in opcodes(case):
            found = rows.find(opcode)
            if found:
                used.add(found[0].pattern)
    return [row.pattern for row in table.ROWS if row.pattern not in used]


def run(library):
    machine = Machine(library)
    loaded = machine.load(HEADER + "".join(kernel(i, case) for i, case in enumerate(CASES)))
    wrong = 0
    for i, case in enumerate(CASES):
        mistake = first_mistake(case, machine.compute(loaded, i, case))
        if mistake:
            wrong += 1
            row, result, wanted = mistake
            text = ", ".join(f"{value:#x}" for value in row)
            if wrong <= 20:
                show = [v if isinstance(v, str) else f"{v:#x}" for v in (result, wanted)]
                print(f"{case.text}: of {text} it gives {show[0]} instead of {show[1]}")
    for pattern in rows_without_case():
        print(f"{pattern}: a row of the table without a case")
        wrong += 1
    print(f"{len(CASES)} cases, {sum(len(case.data) for case in CASES)} operands, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[2:] == ["--planted"]:
        from planted import run_planted

        sys.exit(run_planted(sys.argv[1], CASES))
    sys.exit(run(sys.argv[1]))
