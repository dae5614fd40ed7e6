"""Writes C for functions of PTX: scopes, registers, operands. What an instruction means is in the
tables.

Registers are unsigned integers of their width, and an operand is converted where it is used, so
that no type of PTX is lost. A parameter or a local variable is an array of bytes. An address in
shared memory is an offset of 32 bits; all others are pointers of the process. In a module that
keeps addresses of .const and .local in registers of 32 bits (LLVM with short pointers, as Triton
has it), these are signed distances of 32 bits from a variable of the module and from the thread's
stack; so are those of functions' parameters, which lie there too.
"""

import re
from dataclasses import dataclass

import weak
from flow import Flow
from patterns import bits_of, expand
from reader import Label, PtxError, Scope, Table, Variable
from registers import special_register

SIZES = {8: "u8", 16: "u16", 32: "u32", 64: "u64", 128: "u128"}


ESCAPES = {"_": "__", "%": "_p", "$": "_s", ".": "_d", ":": "_c"}


def c_name(name):
    """A name of PTX as a part of one of C: two names never become the same."""
    return re.sub(r"[_%$.:]", lambda match: ESCAPES[match.group()], name)


def local_name(name):
    """The C name of what a function declares. Texts of instructions have no such names."""
    return "x_" + c_name(name)


def element_bytes(type_):
    return 1 if type_ == "pred" else bits_of(type_) // 8


@dataclass
class Symbol:
    """What a name stands for: kind is reg, param, local, shared, global, const, function."""

    kind: str
    text: str
    bits: int = 0
    offset: int = 0
    sized: bool = True


class Unknown(Exception):
    """An instruction or form that no row is for."""


class Emitter:
    """Emits the functions of one module."""

    def __init__(self, table, names, places, modes=()):
        self.table = table
        self.short = False  # addresses of .const and .local are distances of 32 bits
        self.lock_step = "lockstep" in modes  # lanes of a warp run together, and part at branches
        self.weak = "weak" in modes  # accesses to memory are delayed and reordered
        self.flow = None  # then, of the function
        self.names = names  # of the module: Symbol by name
        self.places = places  # of shared variables: offset by (function, name)
        self.scopes = []
        self.function = None
        self.unknown = []  # (line, text): instructions that are not in the table
        self.instructions = 0
        self.line = 0
        self.labels = 0

    # ---- Names ----

    def find(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.names.get(name)

    def symbol(self, name, line=0):
        found = self.find(name)
        if not found:
            raise PtxError(line or self.line, f'"{name}" is not declared')
        return found

    @staticmethod
    def unsigned(bits):
        return SIZES[bits]

    @staticmethod
    def bits(type_):
        return f"b{bits_of(type_)}"

    # ---- Operands ----

    def number(self, value, type_):
        if type_ == "pred":
            return str(int(value != 0))
        if type_ in ("f32", "f64"):
            bits = value & (1 << bits_of(type_)) - 1
            return f'ptx_{type_}({bits:#x}u{"ll" if type_ == "f64" else ""})'
        return f"({self.c_type(type_)}){value & (1 << 64) - 1:#x}ull"

    @staticmethod
    def c_type(type_):
        """Halves and pairs are kept as bits."""
        if type_ in ("f32", "f64") or type_[0] in "us" and type_[1:].isdigit():
            return type_
        return SIZES[bits_of(type_)] if type_ != "pred" else "u8"

    def literal(self, name, type_):
        """0f3F800000 and 0dBFF0000000000000."""
        match = re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", name)
        if not match:
            return None
        value = int(match.group(1) or match.group(2), 16)
        wanted = "f32" if match.group(1) else "f64"
        text = f'ptx_{wanted}({value:#x}u{"ll" if wanted == "f64" else ""})'
        if type_ in ("f32", "f64"):
            return f"({type_}){text}"
        return f"({self.c_type(type_)}){value:#x}ull"

    def read(self, op, type_, address=False):
        """The C text of an operand as a value of the type."""
        if op.kind == "number":
            return self.number(op.offset, type_)
        if op.kind == "not":
            return f"!{self.read(op.parts[0], type_)}"
        if op.kind != "word":
            raise Unknown(f"an operand of the kind {op.kind} at this place")
        text = self.literal(op.text, type_) or special_register(op.text)
        if text:
            return text if re.match(r"0[fFdD]", op.text) else self.as_type(text, 64, type_)
        found = self.symbol(op.text)
        if found.kind == "reg":
            return self.as_type(found.text, found.bits, type_)
        if not address and found.kind != "function":
            raise Unknown(f"the variable {op.text} at this place")
        if found.kind != "shared" and bits_of(type_) < 64 and not self.base_of(found.kind):
            raise Unknown(f"the address of {op.text}, which has 64 bits, in {bits_of(type_)}")
        return f"({self.c_type(type_)})({self.address_of(found)} + {op.offset})"

    def is_predicate(self, op):
        if op.kind == "not":
            return True
        found = self.find(op.text) if op.kind == "word" else None
        return bool(found) and found.kind == "reg" and found.bits == 1

    def base_of(self, space):
        """What addresses of this space are distances from; "": they are pointers."""
        return {"const": "(u64)(uintptr_t)ptx_near", "local": "ptx_local", "param": "ptx_local"}.get(
            space.removesuffix("::func"), ""
        ) if self.short else ""

    def address_of(self, symbol):
        """The number that a variable's name stands for in mov."""
        if symbol.kind == "shared":
            return f"{symbol.offset}" if symbol.sized else "ptx_dynamic"
        base = self.base_of(symbol.kind)
        return f"(u64)(uintptr_t){symbol.text}" + (f" - {base}" if base else "")

    def as_type(self, text, bits, type_):
        if type_ == "pred":
            return text
        if type_ in ("f32", "f64"):
            return f"ptx_{type_}({text})"
        wanted = self.c_type(type_)
        return text if SIZES.get(bits) == wanted else f"({wanted}){text}"

    def write(self, op, type_, text):
        """The C statement that gives an operand a value of the type."""
        if op.kind != "word":
            raise Unknown("a result that is no register")
        if op.text == "_":
            return f"(void)({text});"
        found = self.symbol(op.text)
        if found.kind != "reg":
            raise PtxError(self.line, f"{op.text} is not a register")
        if found.bits == 1 or type_ == "pred":
            return f"{found.text} = {text};"
        if type_ in ("f32", "f64"):
            return f"{found.text} = ptx_bits_{type_}({text});"
        own = SIZES[found.bits]
        return f"{found.text} = ({own})({self.c_type(type_)})({text});"

    def address(self, op, space):
        """The C text of what is in brackets, as a pointer."""
        if op.kind != "address" or op.parts:
            raise Unknown("an operand that is no address")
        found = self.find(op.text) if op.text else None
        if op.text and not found:
            raise PtxError(self.line, f'"{op.text}" is not declared')
        if space.startswith("shared"):
            base = (
                "0" if not found else found.text if found.kind == "reg" else self.address_of(found)
            )
            return f"(shared + (u32)({base} + {op.offset}))"
        if found and found.kind == "shared":
            raise PtxError(
                self.line, f"{op.text} is in shared memory, and this instruction is for another"
            )
        base = (
            "0"
            if not found
            else found.text if found.kind == "reg" else f"(u64)(uintptr_t){found.text}"
        )
        distance_from = self.base_of(space) if not found or found.kind == "reg" else ""
        if distance_from:
            base = f"({distance_from} + (u64)(s64)(s32){base})"
        return f"((char *)(uintptr_t)((u64){base} + {op.offset}))"

    # ---- Statements ----

    def instruction(self, statement):
        """The C text of one instruction, its guard included."""
        self.line = statement.line
        self.instructions += 1
        found = self.table.find(statement.opcode)
        if not found:
            raise Unknown("")
        row, matched = found
        wrong = row.wrong_count(len(statement.operands))
        if wrong:
            raise Unknown(wrong)
        if callable(row.code):
            text = row.code(self, statement, matched)
        else:
            text = self.expression(row, matched, statement.operands)
        if text is None:
            raise Unknown("")
        if self.weak:
            before, after = weak.around(statement.opcode)
            text = f"{before} {text} {after}"
        if statement.guard:
            guard = ("!" if statement.negated else "") + self.symbol(statement.guard).text
            return f"if ({self.part(statement, guard)}) {{ {text} }}"
        return text

    def part(self, statement, condition):
        """Whether a lane goes where the others may not go: the C text of a condition."""
        if not self.flow or id(statement) not in self.flow.partings:
            return condition
        part = f"ptx_part(lanes, {condition}, {self.flow.partings[id(statement)]})"
        # lanes that wait for others do not keep back what they have stored
        return f"({weak.SETTLE.rstrip(';')}, {part})" if self.weak else part

    def meet(self, item):
        """C text: lanes that have parted meet again before the item."""
        if not self.flow or id(item) not in self.flow.meetings:
            return []
        return [weak.SETTLE] * self.weak + [f"ptx_meet(lanes, held, {self.flow.meetings[id(item)]});"]

    def returns(self):
        """C text: the end of a function."""
        if self.function.entry:
            return (weak.END if self.weak else "") + "return;"
        if not self.flow:
            return "return;"
        return (weak.SETTLE + " " if self.weak else "") + f"ptx_meet(lanes, held, {self.flow.end}); return;"

    def expression(self, row, matched, operands):
        """A row that is one expression."""
        types, by_letter = {}, {}
        for (letter, type_), operand in zip(row.operands, operands):
            types[letter] = (
                expand("$W", matched, None)
                if type_ == "W"
                else matched["T"] if type_ == "T" else type_
            )
            by_letter[letter] = operand
        text = expand(row.code, matched, lambda letter: self.read(by_letter[letter], types[letter]))
        return self.write(by_letter["d"], types["d"], text)

    def item(self, item):
        if isinstance(item, Scope):
            return ["{"] + self.scope(item) + ["}"]
        if isinstance(item, Label):
            return [f'{self.find(":" + item.name).text}: ;'] + self.meet(item)
        if isinstance(item, Variable):
            return self.declare(item)
        if isinstance(item, Table):
            return []
        try:
            return self.meet(item) + [f"#line {item.line}", self.instruction(item)]
        except Unknown as why:
            self.unknown.append((item.line, item.opcode, str(why)))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            # a row's function met an operand of another kind than it looks for
            self.unknown.append((item.line, item.opcode, "its operands are not of the kinds due"))
        return []

    def declare(self, item):
        """The C declarations of registers and of local variables."""
        if item.space == "reg":
            bits = bits_of(item.type)
            count = item.registers
            names = [f"{item.name}{i}" for i in range(count)] if count else [item.name]
            for name in names:
                self.scopes[-1][name] = Symbol("reg", local_name(name), bits)
            text = ", ".join(f"{local_name(name)} = 0" for name in names)
            return [f'{SIZES.get(bits, "u8")} {text};'] if names else []
        if item.space == "shared":
            place = self.places[(self.function.name, item.name)]
            self.scopes[-1][item.name] = Symbol(
                "shared", "", offset=place or 0, sized=place is not None
            )
            return []
        if item.space in ("global", "const"):
            raise PtxError(
                item.line,
                f"{item.name}: a .{item.space} variable inside a function is not supported",
            )
        size = element_bytes(item.type) * item.count
        self.scopes[-1][item.name] = Symbol(item.space, local_name(item.name))
        align = max(item.align, element_bytes(item.type))
        return [f"u8 {local_name(item.name)}[{max(size, 1)}] __attribute__((aligned({align})));"]

    def scope(self, scope):
        names = {}
        for item in scope.items:
            if isinstance(item, Label):
                self.labels += 1
                names[":" + item.name] = Symbol("label", f"L{self.labels}_{c_name(item.name)}")
            elif isinstance(item, Table):
                names[":" + item.name] = item
        self.scopes.append(names)
        lines = []
        for item in scope.items:
            lines += self.item(item)
        self.scopes.pop()
        return lines

    # ---- Functions ----

    def signature(self, function):
        name = self.names[function.name].text
        if function.entry:
            return f"static void {name}(const u8 *ptx_parameters)"
        parameters = ["struct ptx_lanes *lanes"] if self.lock_step else []
        parameters += ["struct ptx_weak *weak"] if self.weak else []
        parameters += [f"u8 *{local_name(p.name)}" for p in function.returns + function.parameters]
        return f'static void {name}({", ".join(parameters) or "void"})'

    def declaration(self, function):
        return self.signature(function) + ";"

    def body(self, function):
        """The C text of a function, in lines."""
        self.function, self.labels, self.line = function, 0, function.line
        self.flow = Flow(function) if self.lock_step else None
        own = {}
        lines = [
            self.signature(function),
            "{",
            "char *const shared = ptx_shared(); u32 cc = 0; (void)shared; (void)cc;",
        ]
        if self.short:
            lines.append("const u64 ptx_local = gshmem_host_ptx_stack(); (void)ptx_local;")
        if self.flow and function.entry:
            lines.append("struct ptx_lanes own = {~0u, 0, {{0}}}, *const lanes = &own;")
        if self.flow:
            lines.append("const u32 held = lanes->held; (void)held;")
        if self.weak and function.entry:
            lines.append("struct ptx_weak own_weak, *const weak = &own_weak;")
            lines.append("gshmem_host_ptx_weak_begin(weak, sizeof own_weak);")
        if function.entry:
            for parameter, offset in parameter_offsets(function.parameters):
                own[parameter.name] = Symbol("entry", f"(ptx_parameters + {offset})")
        else:
            for parameter in function.returns + function.parameters:
                if parameter.space == "reg":
                    raise PtxError(
                        parameter.line,
                        f"{function.name}: parameters in registers are not supported",
                    )
                own[parameter.name] = Symbol("param", local_name(parameter.name))
        self.scopes = [own]
        lines += self.scope(function.body)
        return lines + [self.returns(), "}"]


def parameter_offsets(parameters):
    """Where each parameter of a kernel lies in their block."""
    at, found = 0, []
    for parameter in parameters:
        align = max(parameter.align, element_bytes(parameter.type))
        at = (at + align - 1) // align * align
        found.append((parameter, at))
        at += element_bytes(parameter.type) * parameter.count
    return found
