"""How the rows of the table of instructions are written, and found.

A row is a pattern, its operands, and what they become in C:

    ("add{.rnd}{.ftz}{.sat}.f32",  "d a b",  "$sat($ftz(ptx_add_f32$rnd($ftz(a), $ftz(b))))")

Pattern: parts in the order of the PTX manual. `{.x}` may be missing; `.@SET` is one of a set
below. What an optional part or a set has matched is known by its name in lower case. Operands:
d is the result, a letter in the C text is that operand, converted to its type: `T`, the type of
the instruction (its last part), unless another stands behind a colon. `W` is the type twice as
wide. An operand with a question mark may be missing; `*` stands for any. A pattern that ends in
`.*` takes any parts there: its function looks at them. C: `$T`, `$W`, `$N` are the type, the
wider type, and its bits; `$set` is what matched, `$ftz` and other optional parts are the name of
a function, or nothing. A row may have a Python function instead, for what is more than an
expression.
"""

import re

SETS = {
    "INT": "u16 u32 u64 s16 s32 s64",
    "INT4": "u32 u64 s32 s64",
    "SIGNED": "s16 s32 s64",
    "HALFINT": "u16 u32 s16 s32",
    "PAIR": "u16x2 s16x2",
    "BITS": "b16 b32 b64",
    "BITS4": "b32 b64",
    "BYTES2": "e4m3x2 e5m2x2",
    "REAL": "f32 f64",
    "HALF": "f16 f16x2 bf16 bf16x2",
    "ANY": "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 b128",
    "VALUE": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
    "BYTEWISE": "u32 s32",
    "RND": "rn rz rm rp",
    "CMP": "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan",
    "BOOL": "and or xor",
    "WRAP": "clamp wrap",
    "MODE": "f4e b4e rc8 ecl ecr rc16",
    "SHUFFLE": "up down bfly idx",
    "VOTE": "all any uni",
    "SCOPE": "cta cluster gpu sys",
    "ORDER": "sc acq_rel acquire release relaxed",
    "LOHI": "lo hi",
    "LEFTRIGHT": "l r",
    "REDUX": "add min max and or xor",
    "TEST": "finite infinite number notanumber normal subnormal",
}
SETS = {name: tuple(words.split()) for name, words in SETS.items()}

FUNCTIONS = ("ftz", "sat", "relu")  # optional parts that are functions of the result
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
BITS = {
    "pred": 1,
    "b128": 128,
    "u16x2": 32,
    "s16x2": 32,
    "f16x2": 32,
    "f32x2": 64,
    "bf16x2": 32,
    "bf16": 16,
    "f16": 16,
    "tf32": 32,
}


def bits_of(type_):
    """How many bits a type has."""
    return BITS.get(type_) or int(re.sub(r"\D", "", type_))


class Row:
    """One instruction, or several that differ in a type or a modifier."""

    def __init__(self, pattern, operands, code):
        self.pattern = pattern
        self.name = re.match(r"[a-z0-9_]+", pattern).group()
        words = operands.split()
        self.most = 99 if "*" in words else len(words)
        self.least = sum(word[-1] not in "?*" for word in words)
        self.operands = [self.split(word.rstrip("?")) for word in words]
        self.code = code
        self.free = pattern.endswith(".*")  # its function looks at the parts itself
        self.parts = []
        for optional, text in re.findall(r"(\{?)\.(@?[\w:]+)\}?", pattern[len(self.name) :]):
            wanted = SETS[text[1:]] if text[0] == "@" else (text,)
            self.parts.append((text.lstrip("@").lower(), bool(optional), wanted))

    @staticmethod
    def split(word):
        name, _, type_ = word.partition(":")
        return name, type_ or "T"

    def wrong_count(self, count):
        """In words: what is wrong with so many operands; "": nothing."""
        if self.least <= count <= self.most:
            return ""
        due = str(self.least) + (f" to {self.most}" if self.most > self.least else "")
        return f"{count} operand{'' if count == 1 else 's'} instead of {due}"

    def match(self, parts):
        """What each part has matched, or None. T is the last one."""
        if self.free:
            begins = all(part in wanted for part, (_, _, wanted) in zip(parts, self.parts))
            if not begins or len(parts) < len(self.parts):
                return None
            return {"T": parts[-1] if parts else "", "parts": parts}
        found, at = {}, 0
        for name, optional, wanted in self.parts:
            if at < len(parts) and parts[at] in wanted:
                found[name] = parts[at]
                at += 1
            elif not optional:
                return None
        if at < len(parts):
            return None
        found["T"] = parts[-1] if parts else ""
        return found


class Table:
    """The rows by name, and what was found before."""

    def __init__(self, rows):
        self.rows = {}
        for row in rows:
            self.rows.setdefault(row.name, []).append(row)
        self.known = {}

    def find(self, opcode):
        """(row, what its parts matched); None where no row is for this opcode."""
        if opcode not in self.known:
            name, *parts = opcode.split(".")
            parts = [part for part in parts if part]  # aligned "::" stays within a part
            self.known[opcode] = None
            for row in self.rows.get(name, []):
                found = row.match(parts)
                if found is not None:
                    self.known[opcode] = (row, found)
                    break
        return self.known[opcode]


def expand(code, found, read):
    """The C text of a row: read(letter) is the C text of an operand."""
    type_ = found["T"]

    def replace(match):
        word = match.group(1)
        if word == "T":
            return type_
        if word == "W":
            return WIDE[type_]
        if word == "N":
            return str(bits_of(type_))
        value = found.get(word)
        if word == "rnd":  # to nearest is what C does
            return "" if value in (None, "rn") else "_" + value
        if value is None:
            return ""
        return f"ptx_{word}_{type_}" if word in FUNCTIONS else value

    text = re.sub(r"\$(\w+?)(?=\W|_|$)", replace, code)
    return re.sub(r"(?<![\w.])([a-e])(?!\w)", lambda match: read(match.group(1)), text)
