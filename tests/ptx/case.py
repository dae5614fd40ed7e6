"""A case: an instruction, operands, and what it ought to give."""

from dataclasses import dataclass, field
from typing import Callable

INTERESTING = (
    0,
    1,
    2,
    3,
    5,
    7,
    0x7F,
    0x80,
    0xFF,
    0x1234,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFF,
    0x12345678,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xDEADBEEF,
    0xFFFFFFFE,
    0xFFFFFFFF,
    0x123456789A,
    0x7FFFFFFFFFFFFFFF,
    0x8000000000000000,
    0xFEDCBA9876543210,
    0xFFFFFFFFFFFFFFFF,
)
SMALL = (0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256)


@dataclass
class Case:
    """`text`: the instruction, with {d} and {a}, {b}, … for registers. want(a, b, …): bits, or
    None where anything is right."""

    text: str
    inputs: list  # bits of each operand; 1: a predicate
    output: int  # bits of the result
    want: Callable
    data: list = field(default_factory=list)  # of operands
    close: Callable = None  # whether a result is near enough to the wanted one

    @property
    def opcode(self):
        return self.text.split()[0]


def bits_of(type_):
    return int("".join(c for c in type_ if c.isdigit()))


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 & 1 else value


def number(value, type_):
    """Bits as the integer of the type."""
    return signed(value, bits_of(type_)) if type_[0] == "s" else value


def combinations(choices):
    """All of a few, thinned out to some hundred."""
    found = [()]
    for column in choices:
        found = [row + (value,) for row in found for value in column]
    step = max(1, len(found) // 300)
    if step > 1 and step % 2 == 0:
        step += 1  # so that the last column does not stay the same
    return found[::step]


def integers(bits):
    return sorted({value & (1 << bits) - 1 for value in INTERESTING})
