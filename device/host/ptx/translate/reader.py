"""Reads PTX: text to functions, variables and statements. Knows nothing of instructions or of C.

Every statement keeps its line, so that a mistake can be reported where it is.
"""

import re
from dataclasses import dataclass, field

NEWEST_VERSION = (9, 4)  # of CUDA 13.4; what is new in one are instructions, which the table has or refuses

TYPE = re.compile(r"pred|[bus](8|16|32|64)|b128|f(16|32|64)|tf32|b?f16(x2)?|[us]16x2")

TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r]+|//[^\n]*)
  | (?P<newline>\n)
  | (?P<comment>/\*.*?\*/)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<word>(?:[\w$%.]|::)+)
  | (?P<mark>.)
""",
    re.X | re.S,
)


class PtxError(Exception):
    """A mistake in the PTX, or a thing that is not supported, in words, and its line."""

    def __init__(self, line, text):
        super().__init__(text)
        self.line = line
        self.text = text


@dataclass
class Variable:
    """A variable, parameter or array of registers, as it was declared."""

    name: str
    space: str  # reg, param, local, shared, global, const
    type: str  # b8, u32, ...
    line: int
    align: int = 0
    count: int = 1  # elements
    array: bool = False
    sized: bool = True  # False: extern __shared__ arrays
    external: bool = False
    registers: int = 0  # %r<5>: five of them
    value: list = None  # tokens behind "="


@dataclass
class Statement:
    """An instruction: opcode and operands, with a guard perhaps."""

    line: int
    opcode: str
    operands: list
    guard: str = ""
    negated: bool = False


@dataclass
class Label:
    line: int
    name: str


@dataclass
class Scope:
    """A block in braces."""

    line: int
    items: list = field(default_factory=list)


@dataclass
class Table:
    """Labels that brx.idx chooses from, or the prototype of an indirect call."""

    line: int
    name: str
    labels: list


@dataclass
class Function:
    name: str
    line: int
    entry: bool
    parameters: list
    returns: list
    body: Scope = None
    external: bool = False
    block: tuple = (0, 0, 0)  # .reqntid: the only size of blocks; zeros: any


@dataclass
class Module:
    version: str = ""
    target: str = ""
    variables: list = field(default_factory=list)
    functions: list = field(default_factory=list)


@dataclass
class Operand:
    """kind: word, number, vector, address, not, pair."""

    kind: str
    text: str = ""
    parts: list = field(default_factory=list)
    offset: int = 0


def tokens_of(text):
    """The tokens of the text, each with its line."""
    line, found = 1, []
    for match in TOKEN.finditer(text):
        kind, value = match.lastgroup, match.group()
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += value.count("\n")
        elif kind == "word" and value[0] == ".":  # .reg.b32 is two words
            found += [("." + part, line) for part in value[1:].split(".")]
        elif kind != "skip":
            found.append((value, line))
    return found


def number_of(text):
    """The integer that a token stands for, or None."""
    text = text.rstrip("U")
    if re.fullmatch(r"0[0-7]*|[1-9]\d*", text):
        return int(text, 8 if text[0] == "0" else 10)
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    if re.fullmatch(r"0[bB][01]+", text):
        return int(text, 2)
    return None


class Reader:
    """A position in the tokens of a text."""

    def __init__(self, text):
        self.tokens = tokens_of(text)
        self.at = 0
        self.last_line = self.tokens[-1][1] if self.tokens else 1

    # ---- Tokens ----

    def line(self):
        return self.tokens[self.at][1] if self.at < len(self.tokens) else self.last_line

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at][0] if at < len(self.tokens) else None

    def next(self):
        if self.at >= len(self.tokens):
            raise PtxError(
                self.last_line, "the text ends in the middle of a statement: it is truncated"
            )
        self.at += 1
        return self.tokens[self.at - 1][0]

    def take(self, text):
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expect(self, text):
        line, found = self.line(), self.next()
        if found != text:
            raise PtxError(line, f'"{found}" where "{text}" is due')

    def number(self):
        line, text = self.line(), self.next()
        negative = text == "-"
        value = number_of(self.next() if negative else text)
        if value is None:
            raise PtxError(line, f'"{text}" where a number is due')
        return -value if negative else value

    def skip_to(self, end):
        """Behind the next `end`; what is in between is dropped."""
        while self.next() != end:
            pass

    def skip_braces(self):
        self.expect("{")
        depth = 1
        while depth:
            token = self.next()
            depth += (token == "{") - (token == "}")

    # ---- Declarations ----

    def variable(self, space, line, most=0):
        """What follows .global, .reg, .param, ...: one declaration for each name, `most` of
        them."""
        type_, align, vector = "", 0, 1
        while self.peek() and self.peek().startswith("."):
            word = self.next()
            if word == ".align":
                align = self.number()
            elif word == ".attribute":
                self.expect("(")
                self.skip_to(")")
            elif word == ".ptr":
                continue
            elif word in (".v2", ".v4"):
                vector = int(word[2:])
            elif word in (".global", ".const", ".shared", ".local", ".generic"):
                continue  # the space that a .ptr points to
            elif word[1:] in ("texref", "samplerref", "surfref"):
                raise PtxError(line, f"{word}: textures and surfaces are not supported")
            else:
                type_ = word[1:]
        if not TYPE.fullmatch(type_):
            why = f'".{type_}" is no type' if type_ else "a declaration without a type"
            raise PtxError(line, why)
        found = []
        while True:
            made = Variable(self.next(), space, type_, line, align, vector, vector > 1)
            if self.take("<"):
                made.registers = self.number()
                self.expect(">")
            while self.take("["):
                made.array = True
                if self.take("]"):
                    made.sized = False
                    continue
                made.count *= self.number()
                self.expect("]")
            if self.take("="):
                made.value = self.value()
            found.append(made)
            if len(found) == most or not self.take(","):
                return found

    def value(self):
        """The tokens of an initialiser."""
        found, depth = [], 0
        while depth or self.peek() not in (";", ","):
            token = self.next()
            depth += (token in "{(") - (token in "})")
            found.append(token)
        return found

    def parameters(self):
        self.expect("(")
        found = []
        while not self.take(")"):
            line = self.line()
            space = self.next()
            if space not in (".param", ".reg"):
                raise PtxError(line, f'"{space}" where a parameter is due')
            found += self.variable(space[1:], line, 1)
            self.take(",")
        names = [made.name for made in found if made.name != "_"]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise PtxError(found[-1].line, f"the parameter {twice} is declared twice")
        return found

    # ---- Statements ----

    def operand(self):
        line, token = self.line(), self.next()
        if token == "!":
            return Operand("not", parts=[self.operand()])
        if token == "-":
            return Operand("number", offset=-self.number())
        if token == "{":
            parts = []
            while not self.take("}"):
                parts.append(self.operand())
                self.take(",")
            return Operand("vector", parts=parts)
        if token == "(":
            parts = []
            while not self.take(")"):
                parts.append(self.operand())
                self.take(",")
            return Operand("list", parts=parts)
        if token == "[":
            base = self.operand()
            if base.kind == "number":
                base = Operand("word", "", offset=base.offset)
            rest = []
            while self.take(","):  # a tensor's coordinates
                rest.append(self.operand())
            self.expect("]")
            return Operand("address", base.text, rest, base.offset)
        value = number_of(token)
        if value is not None:
            return Operand("number", offset=value)
        if not re.match(r"[\w$%]", token):
            raise PtxError(line, f'"{token}" where an operand is due')
        found = Operand("word", token)
        if self.take("|"):
            return Operand("pair", parts=[found, self.operand()])
        while self.peek() in ("+", "-"):
            sign = -1 if self.next() == "-" else 1
            found.offset += sign * self.number()
        return found

    def instruction(self):
        line, guard, negated = self.line(), "", False
        if self.take("@"):
            negated = self.take("!")
            guard = self.next()
        opcode, operands = self.next(), []
        if not re.match(r"[a-z]", opcode):
            raise PtxError(line, f'"{opcode}" where an instruction is due')
        while not self.take(";"):
            operands.append(self.operand())
            if self.peek() != ";":
                self.expect(",")
        return Statement(line, opcode, operands, guard, negated)

    def table(self, name, line):
        """Behind "name:": .branchtargets or .callprototype."""
        kind, labels = self.next(), []
        while self.peek() != ";":
            word = self.next()
            if word != ",":
                labels.append(word)
        self.expect(";")
        return Table(line, name, labels if kind == ".branchtargets" else [])

    def body(self, line):
        scope = Scope(line)
        while not self.take("}"):
            line, token = self.line(), self.peek()
            if token == "{":
                self.next()
                scope.items.append(self.body(line))
            elif token in (".reg", ".local", ".shared", ".param", ".const", ".global"):
                scope.items += self.variable(self.next()[1:], line)
                self.expect(";")
            elif token == ".loc":
                while self.line() == line and self.peek() is not None:
                    self.next()
            elif token in (".pragma", ".callprototype", ".branchtargets"):
                self.skip_to(";")
            elif token == ";":
                self.next()
            elif self.peek(1) == ":":
                name = self.next()
                self.next()
                if self.peek() in (".branchtargets", ".callprototype", ".calltargets"):
                    scope.items.append(self.table(name, line))
                else:
                    scope.items.append(Label(line, name))
            else:
                scope.items.append(self.instruction())
        return scope

    def sizes(self):
        """The numbers behind a directive of a kernel."""
        found = []
        while self.peek() not in ("{", ";") and not self.peek().startswith("."):
            if not self.take(","):
                found.append(self.number())
        return found

    def function(self, entry, external, line):
        made = Function("", line, entry, [], [], external=external)
        while self.peek() == ".attribute":
            self.next()
            self.expect("(")
            self.skip_to(")")
        if self.peek() == "(":
            made.returns = self.parameters()
        made.name = self.next()
        if self.peek() == "(":
            made.parameters = self.parameters()
        while self.peek() not in ("{", ";"):
            word = self.next()
            if word == ".reqntid" and entry:
                made.block = tuple((self.sizes() + [1, 1])[:3])
            elif word in (".reqnctapercluster", ".explicitcluster") and entry:
                sizes = self.sizes()
                if any(size != 1 for size in sizes):
                    raise PtxError(line, f"{made.name}: clusters of blocks are not supported")
        if self.take(";"):
            return made
        self.next()
        made.body = self.body(line)
        return made

    # ---- The whole text ----

    def module(self):
        made = Module()
        while self.at < len(self.tokens):
            line, word = self.line(), self.next()
            external = False
            while word in (".visible", ".extern", ".weak", ".common"):
                external |= word == ".extern"
                word = self.next()
            if word == ".version":
                made.version = self.version(line)
            elif word == ".target":
                made.target = self.next()
                while self.take(","):
                    self.next()
            elif word == ".address_size":
                if self.number() != 64:
                    raise PtxError(line, "addresses of 32 bits; only .address_size 64 is supported")
            elif word in (".file", ".loc"):
                while self.line() == line and self.peek() is not None:
                    self.next()
            elif word == ".section":
                self.next()
                self.skip_braces()
            elif word in (".func", ".entry"):
                made.functions.append(self.function(word == ".entry", external, line))
            elif word in (".global", ".const", ".shared"):
                for one in self.variable(word[1:], line):
                    one.external = external
                    made.variables.append(one)
                self.expect(";")
            elif word == ";":
                continue
            else:
                raise PtxError(line, f'"{word}" is not known at this place')
        if not made.version:
            raise PtxError(1, "this is not PTX: it has no .version")
        return made

    def version(self, line):
        text = self.next()
        match = re.fullmatch(r"(\d+)\.(\d+)", text)
        if not match or (int(match[1]), int(match[2])) > NEWEST_VERSION:
            newest = ".".join(str(part) for part in NEWEST_VERSION)
            raise PtxError(line, f"PTX of version {text}; versions up to {newest} are supported")
        return text
