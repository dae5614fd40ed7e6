#!/usr/bin/env python3
"""Weak memory (GSHMEM_PTX_MEMORY=weak) gives what a GPU may give, and nothing else: the shapes of
weak_shapes.py, many rounds of each.

weak.py LIBRARY [ROUNDS [-v]]     rounds of each shape whose weak outcome is forbidden; one that
                                  has to be seen is tried until it is, at most MOST times
"""

import ctypes
import mmap
import os
import struct
import sys
import tempfile
import threading

from machine import HEADER, Machine, translator
from weak_shapes import FORBIDDEN, SEEN, SHAPES, SYS

sys.path.insert(0, translator())
from build import build_library  # pylint: disable=wrong-import-position
from module import translate  # pylint: disable=wrong-import-position

MOST = 100000
AT_ONCE = 500  # rounds of a launch
SLOTS = 8  # rounds until the same memory is used again, so that threads know what they will load
CELLS = {"x": 0, "y": 128}
SLOT = 512
BEGUN = SLOTS * SLOT  # in the memory, of each thread: the last round that it has begun
LINE = 128
MEMORY = BEGUN + 4 * LINE
RESULTS = 4  # of a round
PATIENCE = 120  # seconds, for all

KERNEL = """
.visible .entry shape{number}(.param .u64 memory, .param .u64 results, .param .u32 first,
    .param .u32 rounds, .param .u32 alone)
{{
    .reg .u32 %r, %end, %begin, %who, %v<8>;
    .reg .u64 %m, %mine, %at, %slot, %out;
    .reg .pred %p<2>;
    .shared .align 16 .b8 own[{memory_bytes}];
    ld.param.u64 %m, [memory];
    ld.param.u64 %out, [results];
    ld.param.u32 %r, [first];
    ld.param.u32 %end, [rounds];
    add.u32 %end, %end, %r;
    mov.u32 %begin, %r;
    mov.u32 %v0, %ctaid.x;
    mov.u32 %v1, %ntid.x;
    mov.u32 %v2, %tid.x;
    mad.lo.u32 %who, %v0, %v1, %v2;
    ld.param.u32 %v0, [alone];
    add.u32 %who, %who, %v0;
    mul.wide.u32 %at, %who, {line};
    add.u64 %mine, %at, %m;
    add.u64 %mine, %mine, {begun};
ROUND:
    setp.ge.u32 %p0, %r, %end;
    @%p0 ret;
    st.relaxed.sys.global.u32 [%mine], %r;
WAIT:
{wait}
    and.b32 %v0, %r, {last_slot};
    mul.wide.u32 %slot, %v0, {slot};
{base}
    sub.u32 %v1, %r, %begin;
    mul.wide.u32 %at, %v1, {result_bytes};
    add.u64 %at, %at, %out;
{choose}
{threads_text}
NEXT:
    add.u32 %r, %r, 1;
    bra ROUND;
}}
"""


def step_text(step, shared):
    """PTX of a step; a load leaves its value in %v0."""
    kind, *rest = step.split()
    space = "shared" if shared else "global"
    if kind == "B":
        return "    bar.sync 1;"
    if kind == "F":
        return f"    fence.{rest[0]};"
    cell, order = rest[0], "".join(f".{word}" for word in rest[1:])
    at = f"[%slot+{CELLS[cell]}]"
    if kind == "W":
        return f"    st{order}.{space}.u32 {at}, %r;"
    if kind == "W+":
        return f"    atom{order}.{space}.exch.b32 %v3, {at}, %r;"
    if kind == "R+":
        return f"    atom{order}.{space}.add.u32 %v0, {at}, 0;"
    if order == ".nc":
        return f"    ld.{space}.nc.u32 %v0, {at};"
    return f"    ld{order}.{space}.u32 %v0, {at};"


def kernel_text(number, shape):
    """PTX of a kernel that runs rounds of a shape: each thread waits until all have begun the
    round."""
    choose, texts, wait, result = [], [], [], 0
    # by its place in the grid; a place where nobody is has a number, too
    place = {t: n for n, t in enumerate(t for block in shape.blocks() for t in block)}
    for thread, steps in enumerate(shape.threads):
        choose += [f"    setp.eq.u32 %p0, %who, {place[thread]};", f"    @%p0 bra T{thread};"]
        wait += [
            f"    ld.relaxed.sys.global.u32 %v0, [%m+{BEGUN + LINE * place[thread]}];",
            "    setp.lt.u32 %p0, %v0, %r;",
            "    @%p0 bra WAIT;",
        ]
        text, after = [f"T{thread}:"], []
        for step in steps:
            text.append(step_text(step, shape.shared))
            if step[0] == "R":
                text.append(f"    mov.u32 %v{4 + len(after)}, %v0;")
                after.append(f"    st.global.u32 [%at+{4 * result}], %v{4 + len(after)};")
                result += 1
        texts += text + after + ["    bra NEXT;"]
    base = (
        "    mov.u64 %m, own;\n    add.u64 %slot, %slot, %m;\n    ld.param.u64 %m, [memory];"
        if shape.shared
        else "    add.u64 %slot, %slot, %m;"
    )
    return KERNEL.format(
        number=number,
        memory_bytes=MEMORY if shape.shared else 4,
        wait="\n".join(wait),
        begun=BEGUN,
        line=LINE,
        last_slot=SLOTS - 1,
        slot=SLOT,
        result_bytes=4 * RESULTS,
        base=base,
        choose="\n".join(choose + ["    ret;"]),
        threads_text="\n".join(texts),
    )


TEXT = HEADER + "".join(kernel_text(number, shape) for number, shape in enumerate(SHAPES))


def compile_shapes(library, folder):
    """A library of all shapes."""
    code, unknown, _, instructions = translate(TEXT.encode(), "shapes.ptx")
    file = os.path.join(folder, "shapes.so")
    with open(file + ".c", "w", encoding="utf-8") as text:
        text.write(code)
    if unknown or not build_library(
        file + ".c", file, library, False, instructions
    ):
        sys.exit(f"the shapes cannot be compiled: {unknown}")
    return file


class Runner:
    """Runs shapes in this process, and one thread of those that take two in another."""

    def __init__(self, library, file):
        self.machine = Machine(library)
        ctypes.CDLL(file)  # the module, which cuModuleLoadData finds
        self.loaded = self.machine.load(TEXT)

    def run(self, number, memory, first, rounds, who=None):
        """The results of a launch. who: the only thread of the shape that runs here."""
        shape = SHAPES[number]
        blocks = shape.blocks() if who is None else [[who]]
        status = self.machine.launch(
            self.machine.function(self.loaded, f"shape{number}"),
            len(blocks),
            max(len(block) for block in blocks),
            [memory.cells, memory.results, *map(ctypes.c_uint32, (first, rounds, who or 0))],
        )
        if status:
            sys.exit(f"{shape.text()}: the launch failed")


class Memory:
    """Of one shape, shared with a child."""

    def __init__(self):
        self.map = mmap.mmap(-1, MEMORY + 4 * RESULTS * AT_ONCE)
        self.cells = (ctypes.c_char * MEMORY).from_buffer(self.map)
        self.results = (ctypes.c_uint32 * (RESULTS * AT_ONCE)).from_buffer(self.map, MEMORY)


def count_weak(shape, results, first):
    """Rounds with the weak outcome."""
    found = 0
    for i in range(AT_ONCE):
        values = results[RESULTS * i : RESULTS * i + len(shape.weak)]
        found += all(
            wanted is None or (value == first + i) == wanted
            for value, wanted in zip(values, shape.weak)
        )
    return found


class Partner:
    """A process that runs the second thread of shapes: a GPU of its own."""

    def __init__(self, library, file, memories):
        self.ask_from, self.ask = os.pipe()
        self.answer, self.answer_to = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(self.ask)
            runner = Runner(library, file)
            while words := os.read(self.ask_from, 12):
                number, first, rounds = struct.unpack("<III", words)
                runner.run(number, memories[number], first, rounds, 1)
                os.write(self.answer_to, b".")
            os._exit(0)
        os.close(self.ask_from)
        os.close(self.answer_to)

    def begin(self, number, first, rounds):
        os.write(self.ask, struct.pack("<III", number, first, rounds))

    def end(self):
        if not os.read(self.answer, 1):
            sys.exit("the second process has ended")

    def leave(self):
        os.close(self.ask)
        os.waitpid(self.child, 0)


def give_up():
    print(f"the shapes have not ended after {PATIENCE} s", flush=True)
    os._exit(1)


def try_shape(number, memory, runner, partner, rounds):
    """(rounds, rounds with the weak outcome)"""
    shape, tried, weak = SHAPES[number], 0, 0
    most = MOST if shape.verdict == SEEN else rounds
    while tried < most and not (weak and shape.verdict == SEEN):
        if shape.where == SYS:
            partner.begin(number, tried + 1, AT_ONCE)
            runner.run(number, memory, tried + 1, AT_ONCE, 0)
            partner.end()
        else:
            runner.run(number, memory, tried + 1, AT_ONCE)
        weak += count_weak(shape, memory.results, tried + 1)
        tried += AT_ONCE
    return tried, weak


def main(library, rounds):
    os.environ["GSHMEM_PTX_MEMORY"] = "weak"
    verbose = "-v" in sys.argv
    if rounds <= 2000:
        timer = threading.Timer(PATIENCE, give_up)
        timer.daemon = True
        timer.start()
    with tempfile.TemporaryDirectory() as folder:
        file = compile_shapes(library, folder)
        memories = [Memory() for _ in SHAPES]
        partner = Partner(library, file, memories)
        runner = Runner(library, file)
        for number, shape in enumerate(SHAPES):
            tried, weak = try_shape(number, memories[number], runner, partner, rounds)
            if (shape.verdict == FORBIDDEN and weak) or (shape.verdict == SEEN and not weak):
                print(f"{shape.text()}: {shape.verdict}, but seen in {weak} of {tried} rounds")
                return 1
            if verbose:
                print(f"{shape.verdict:9} {weak:5} of {tried:6}  {shape.text()}", flush=True)
        partner.leave()
    print(f"{len(SHAPES)} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 1000))
