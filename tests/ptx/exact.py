"""Floating-point numbers as exact fractions, rounded once: what instructions ought to give,
computed without any floating-point arithmetic."""

from fractions import Fraction
from math import isqrt


class Format:
    """A format of IEEE 754 by the bits of its fraction and its smallest and largest exponent."""

    def __init__(self, fraction, least, most):
        self.fraction, self.least, self.most = fraction, least, most
        self.bits = 1 + (most - least + 2).bit_length() + fraction
        self.infinity = (most - least + 2) << fraction
        self.nan = self.infinity | (1 << fraction) - 1
        self.sign = 1 << self.bits - 1

    def is_nan(self, bits):
        return bits & ~self.sign > self.infinity

    def is_infinite(self, bits):
        return bits & ~self.sign == self.infinity

    def value(self, bits):
        """The number that bits stand for; they are neither infinite nor NaN."""
        size = bits & ~self.sign
        exponent = size >> self.fraction
        mantissa = size & (1 << self.fraction) - 1
        if exponent:
            mantissa |= 1 << self.fraction
        else:
            exponent = 1
        result = Fraction(mantissa) * Fraction(2) ** (exponent - 1 + self.least - self.fraction)
        return -result if bits & self.sign else result

    def round(self, number, mode="rn", zero_sign=0):
        """The bits of a fraction, rounded."""
        sign = self.sign if number < 0 or (number == 0 and zero_sign) else 0
        size = abs(number)
        if size == 0:
            return sign
        exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, self.least)
        while size >= Fraction(2) ** (exponent + 1):
            exponent += 1
        quanta = size / Fraction(2) ** (exponent - self.fraction)
        whole = quanta.numerator // quanta.denominator
        rest = quanta - whole
        up = {
            "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
            "rz": False,
            "rm": bool(sign) and rest > 0,
            "rp": not sign and rest > 0,
        }[mode]
        bits = ((exponent - self.least) << self.fraction) + whole + up
        if bits >= self.infinity:
            largest = mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and bool(sign))
            bits = self.infinity - largest
        return sign | bits

    def flush(self, bits):
        """A subnormal number becomes 0 of its sign."""
        return bits if bits & self.infinity else bits & self.sign


F16 = Format(10, -14, 15)
BF16 = Format(7, -126, 127)
F32 = Format(23, -126, 127)
F64 = Format(52, -1022, 1023)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def square_root(form, bits, mode="rn"):
    """The bits of the root of a number that is not negative."""
    number = form.value(bits)
    if number == 0:
        return bits
    scale = 1 << 1200
    root = isqrt(number.numerator * scale * scale // number.denominator)
    exact = root * root * number.denominator == number.numerator * scale * scale
    return form.round(Fraction(root, scale) + (0 if exact else Fraction(1, scale * 4)), mode)
