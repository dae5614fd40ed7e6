"""What is said of instructions that the table does not have."""

import sys


def report_unknown(name, unknown, behind=""):
    """A line for each opcode: where it is first, and how often."""
    by_opcode = {}
    for line, opcode, why in unknown:
        by_opcode.setdefault((opcode, why), []).append(line)
    for (opcode, why), lines in by_opcode.items():
        times = "once" if len(lines) == 1 else f"{len(lines)} times, first here"
        print(
            f"{name}:{lines[0]}: error: {opcode}: the host device does not know this instruction"
            f'{": " + why if why else ""}; it is there {times}{behind}',
            file=sys.stderr,
        )
