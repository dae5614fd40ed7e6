"""A module of PTX as one file of C: variables, functions, shared memory, and what the library is
told of it."""

import os
import re
import struct

import asynchronous
import control
import matrix
import memory
import table
from emit import Emitter, Symbol, c_name, element_bytes, parameter_offsets
from patterns import Table
from reader import PtxError, Reader, Scope, Statement, Variable, number_of

SHARED_MAX = 227 << 10
TABLE = Table(table.ROWS + asynchronous.ROWS + memory.ROWS + matrix.ROWS + control.ROWS)


class ModuleEmitter(Emitter):
    """The emitter, with the functions that the module defines."""

    def __init__(self, module, names, places, modes=()):
        super().__init__(TABLE, names, places, modes)
        constants = {v.name for v in module.variables if v.space == "const"}
        self.short = any(has_short_address(f, constants) for f in module.functions if f.body)
        self.defined = {f.name for f in module.functions if f.body}
        statements = (i for f in module.functions if f.body for i in walk(f.body))
        self.arrives = any(
            isinstance(i, Statement) and control.may_arrive_at_0(i) for i in statements
        )

        self.arity = {f.name: (len(f.returns), len(f.parameters)) for f in module.functions}

    def is_defined(self, name):
        return name in self.defined

    def wrong_arguments(self, name, results, arguments):
        """In words: what does not fit the function's declaration; "": nothing."""
        due = self.arity.get(name, (results, arguments))
        if due == (results, arguments):
            return ""
        return f"{name} has {due[0]} results and {due[1]} parameters, not {results} and {arguments}"


def has_short_address(function, constants):
    """Whether it moves the address of a variable in .const or .local to a register of 32 bits."""
    items = list(walk(function.body))
    names = constants | {p.name for p in function.parameters if not function.entry}
    names |= {i.name for i in items if isinstance(i, Variable) and i.space == "local"}
    return any(
        isinstance(i, Statement)
        and i.opcode in ("mov.b32", "mov.u32", "mov.s32")
        and i.operands
        and i.operands[-1].text in names
        for i in items
    )


def key_of(data):
    """What the library finds a module by: a hash of its bytes (as key_of() in modules.c)."""
    data += b"\0" * (-len(data) % 8)
    key = 0xCBF29CE484222325
    for word in struct.unpack(f"<{len(data) // 8}Q", data):
        key = (key ^ word) * 0x100000001B3 & (1 << 64) - 1
        key ^= key >> 29
    return f"{key:016x}"


# ---- Shared memory ----


def walk(scope):
    for item in scope.items:
        if isinstance(item, Scope):
            yield from walk(item)
        else:
            yield item


def names_in(operands):
    for op in operands:
        if op.kind in ("word", "address"):
            yield op.text
        yield from names_in(op.parts)


def callee_of(statement):
    """The name in a call: a function's, or that of a register with its address."""
    return next((op.text for op in statement.operands if op.kind == "word"), "")


class SharedMemory:
    """Where each shared variable lies: two that a kernel uses do not overlap."""

    def __init__(self, module):
        self.module = module
        self.variables = {}  # by key: a name of the module, or (function, name)
        for variable in module.variables:
            if variable.space == "shared":
                self.variables[variable.name] = variable
        self.uses, self.calls, self.indirect = {}, {}, set()
        self.functions = {f.name for f in module.functions}
        # functions that may be called by their address
        self.taken = {
            token for v in module.variables for token in v.value or [] if token in self.functions
        }
        for function in module.functions:
            if function.body:
                self.look_at(function)
        self.places, self.bytes = {}, {}
        self.place()

    def look_at(self, function):
        own = {
            i.name for i in walk(function.body) if isinstance(i, Variable) and i.space == "shared"
        }
        uses, calls = set(), set()
        for item in walk(function.body):
            if isinstance(item, Variable) and item.space == "shared":
                self.variables[(function.name, item.name)] = item
                uses.add((function.name, item.name))
            if not isinstance(item, Statement):
                continue
            for name in names_in(item.operands):
                if name in self.variables and name not in own:
                    uses.add(name)
                if name in self.functions:
                    calls.add(name)
                    if not item.opcode.startswith("call"):
                        self.taken.add(name)
            if item.opcode.startswith("call") and callee_of(item) not in self.functions:
                self.indirect.add(function.name)
        self.uses[function.name], self.calls[function.name] = uses, calls

    def reached(self, name):
        """All functions that a kernel may run."""
        found, left = set(), [name]
        while left:
            one = left.pop()
            if one in found or one not in self.uses:
                continue
            found.add(one)
            left += self.calls[one]
            if one in self.indirect:
                left += self.taken
        return found

    def place(self):
        kernels = [f for f in self.module.functions if f.entry and f.body]
        used = {k.name: set().union(*(self.uses[f] for f in self.reached(k.name))) for k in kernels}
        spans = {}
        for kernel in kernels:
            for key in sorted(used[kernel.name], key=str):
                variable = self.variables[key]
                if not variable.sized:
                    self.places[key] = None
                elif key not in self.places:
                    self.put(key, variable, used, spans)
            ends = [spans[key][1] for key in used[kernel.name] if key in spans]
            self.bytes[kernel.name] = max(ends, default=0)
            if self.bytes[kernel.name] > SHARED_MAX:
                raise PtxError(
                    kernel.line,
                    f"{kernel.name}: {self.bytes[kernel.name]} B of shared memory; a block can "
                    f"have {SHARED_MAX}",
                )
        for key, variable in self.variables.items():
            self.places.setdefault(key, 0 if variable.sized else None)

    def put(self, key, variable, used, spans):
        """At the lowest place where no variable lies that some kernel uses beside it."""
        beside = set().union(*(keys for keys in used.values() if key in keys))
        taken = sorted(spans[other] for other in beside if other in spans)
        align = max(variable.align, element_bytes(variable.type))
        size, at = element_bytes(variable.type) * variable.count, 0
        for first, end in taken:
            if at + size <= first:
                break
            at = max(at, (end + align - 1) // align * align)
        self.places[key] = at
        spans[key] = (at, at + size)


# ---- Variables ----


def elements(variable):
    """The tokens of each element of an initial value."""
    found, depth, nested = [[]], 0, False
    for token in variable.value:
        if token in "{},":
            depth += (token == "{") - (token == "}")
            nested |= depth > 1
            found.append([])
        else:
            found[-1].append(token)
    found = [tokens for tokens in found if tokens]
    if nested and len(found) != variable.count:
        raise PtxError(
            variable.line,
            f"{variable.name}: rows with fewer values than elements are not supported",
        )
    return found


def element(variable, tokens, names):
    """The C text of one element: a sum of numbers and perhaps an address, NAME or generic(NAME)."""
    number, address, sign = 0, "", 1
    for token in tokens:
        if token in ("+", "-"):
            sign = -1 if token == "-" else 1
        elif number_of(token) is not None:
            number += sign * number_of(token)
        elif re.fullmatch(r"0[fFdD][0-9a-fA-F]+", token):
            number += sign * int(token[2:], 16)
        elif token in names and not address and sign == 1:
            address = f"(u64)(uintptr_t){names[token].text}"
        elif token not in ("generic", "(", ")"):
            raise PtxError(
                variable.line, f'{variable.name}: "{token}" as an initial value is not known'
            )
    bits = 8 * element_bytes(variable.type)
    if address and bits != 64:
        raise PtxError(
            variable.line,
            f"{variable.name}: parts of an address as initial value are not supported",
        )
    return f"{address} + {number}" if address else f"{number & (1 << bits) - 1:#x}ull"


def variable_text(variable, names, defined):
    """The C definition: an array of elements of the type's width."""
    size, name = element_bytes(variable.type), names[variable.name].text
    align = max(variable.align, size)
    known = {
        name: symbol
        for name, symbol in names.items()
        if symbol.kind in ("global", "const") or name in defined
    }
    values = [element(variable, e, known) for e in elements(variable)] if variable.value else []
    count = max(variable.count, len(values), 1)
    text = f"static u{8 * size} {name}[{count}] __attribute__((aligned({align}), used))"
    return text + (f' = {{{", ".join(values)}}};' if values else ";")


# ---- The module ----


# What NVSHMEM's own device library keeps its state in.
OF_NVSHMEM = ("nvshmemi_device_state_d", "nvshmemi_ibgda_device_state_d", "nvshmemi_device_lib_version_d")


def module_names(module, shared):
    names = {}
    for variable in module.variables:
        if variable.name in OF_NVSHMEM:
            raise PtxError(
                variable.line,
                f"{variable.name}: NVSHMEM's own device library is inside, which finds no job here: "
                "compile the kernel with GSHMEM's nvshmem.h, or link GSHMEM's libnvshmem_device.bc",
            )
    for variable in module.variables:
        if variable.space == "shared":
            place = shared.places[variable.name]
            names[variable.name] = Symbol("shared", "", offset=place or 0, sized=place is not None)
        elif variable.external:
            raise PtxError(
                variable.line,
                f"{variable.name}: a variable of another module; modules are not linked with "
                "each other here (-rdc)",
            )
        else:
            names[variable.name] = Symbol(variable.space, "v_" + c_name(variable.name))
    for function in module.functions:
        names[function.name] = Symbol(
            "function", ("k_" if function.entry else "f_") + c_name(function.name)
        )
    return names


def dynamic_text(kernel, shared):
    return (shared.bytes[kernel.name] + 127) // 128 * 128


def kernel_text(number, kernel, shared, names):
    """What the library is told of a kernel."""
    offsets = parameter_offsets(kernel.parameters)
    rows = ", ".join(f"{{{at}, {element_bytes(p.type) * p.count}}}" for p, at in offsets)
    size = max([at + element_bytes(p.type) * p.count for p, at in offsets], default=0)
    return [
        f"static const struct gshmem_host_ptx_parameter parameters_{number}[] = "
        f'{{{rows or "{0, 0}"}}};',
        f'PTX_KERNEL({number}, {names[kernel.name].text}, "{kernel.name}", parameters_{number}, '
        f"{len(offsets)}, {size}, "
        f"{dynamic_text(kernel, shared)}, {kernel.block[0]}, {kernel.block[1]}, {kernel.block[2]})",
    ]


def translate(data, file):
    """Of the bytes of a module: (the C text, the unknown instructions, the module, how many
    instructions it has)."""
    module = Reader(data.decode("utf-8", "replace")).module()
    shared = SharedMemory(module)
    names = module_names(module, shared)
    modes = [os.environ.get(name, "") for name in ("GSHMEM_PTX_WARPS", "GSHMEM_PTX_MEMORY")]
    emitter = ModuleEmitter(module, names, shared.places, modes)
    file = file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    lines = ['#include "gshmem/host_device/ptx.h"']
    lines += ["static u8 ptx_near[8] __attribute__((used));"] if emitter.short else []
    functions = list({f.name: f for f in module.functions if f.body}.values())
    lines += [emitter.declaration(f) for f in functions]
    variables = [v for v in module.variables if v.space != "shared"]
    lines += [variable_text(v, names, emitter.defined) for v in variables]
    for function in functions:
        lines += [f'#line {function.line} "{file}"'] + emitter.body(function)
    kernels = [f for f in functions if f.entry]
    for number, kernel in enumerate(kernels):
        lines += kernel_text(number, kernel, shared, names)
    lines += about(key_of(data), file, module, (kernels, names), emitter.instructions)
    return "\n".join(lines) + "\n", emitter.unknown, module, emitter.instructions


def variable_row(variable, names):
    """What the library is told of a variable."""
    name, constant = names[variable.name].text, int(variable.space == "const")
    return f'{{"{variable.name}", {name}, sizeof {name}, {constant}}}'


def about(key, file, module, found, instructions):
    """The record of the module, and the constructor that gives it to the library."""
    kernels, names = found
    table_ = ", ".join(f"&kernel_{i}" for i in range(len(kernels)))
    rows = ", ".join(variable_row(v, names) for v in module.variables if v.space != "shared")
    return [
        f'static struct gshmem_host_ptx_kernel *const kernels[] = {{{table_ or "0"}}};',
        f'static const struct gshmem_host_ptx_variable variables[] = {{{rows or "{0}"}}};',
        f'PTX_MODULE("{key}", "{file}", "{module.version}", "{module.target}", '
        f"{instructions}, kernels, "
        f'{len(kernels)}, variables, {sum(v.space != "shared" for v in module.variables)})',
    ]
