"""The classic shapes of programs on weak memory: what a GPU may give for each, and what this mode
gives.

A step of a thread is one of
    W x ORDER     a store of the round's number; + for an exchange, as in "W+ x ORDER"
    R x ORDER     a load; R+ is an addition of 0
    F ORDER       a fence
    B             a barrier of the block
where ORDER is what stands in the instruction ("" is a plain access, "nc" a read-only one). A
shape's weak outcome is what its loads give in the order of the threads: 1 is this round's value, 0
an older one, None either. The verdicts are made by hand from chapter "Memory Consistency Model" of
the PTX manual."""

from dataclasses import dataclass

FORBIDDEN, SEEN, ALLOWED = "forbidden", "seen", "allowed"  # allowed: may be seen, or not

# Where the threads are: blocks of a grid, each a tuple of threads; "sys": each in a process.
BLOCK, GPU, SYS = "block", "gpu", "sys"


@dataclass
class Shape:
    name: str
    threads: list  # of each: its steps
    weak: tuple
    where: object  # BLOCK, GPU, SYS, or blocks of numbers of threads (None: nobody)
    verdict: str
    shared: bool = False

    def text(self):
        where = self.where if isinstance(self.where, str) else "mixed"
        steps = " | ".join("; ".join(thread) for thread in self.threads)
        return f"{self.name}, {where}{', shared' if self.shared else ''}: {steps}"

    def blocks(self):
        numbers = range(len(self.threads))
        if self.where == BLOCK:
            return [list(numbers)]
        if isinstance(self.where, str):
            return [[number] for number in numbers]
        return self.where


def fenced(fence):
    return [f"F {fence}"] if fence else []


def mp(verdict, where, write, read, before="", after="", data="", plus="", last=None, shared=False):
    """Message passing: a flag after its data."""
    last = data if last is None else last
    return Shape(
        "MP",
        [
            [f"W x {data}", *fenced(before), f"W{plus} y {write}"],
            [f"R{plus} y {read}", *fenced(after), f"R x {last}"],
        ],
        (1, 0),
        where,
        verdict,
        shared,
    )


def sb(verdict, where, write, read, fence=""):
    """Store buffering: each stores, then loads what the other stores."""
    return Shape(
        "SB",
        [
            [f"W x {write}", *fenced(fence), f"R y {read}"],
            [f"W y {write}", *fenced(fence), f"R x {read}"],
        ],
        (0, 0),
        where,
        verdict,
    )


def lb(verdict, where, read, write):
    """Load buffering: each loads, then stores what the other loads."""
    return Shape(
        "LB",
        [[f"R x {read}", f"W y {write}"], [f"R y {read}", f"W x {write}"]],
        (1, 1),
        where,
        verdict,
    )


def wrc(verdict, where, write, read, fence=""):
    """Write to read causality: the second tells the third of what it has seen of the first."""
    return Shape(
        "WRC",
        [
            ["W x relaxed.sys"],
            ["R x relaxed.sys", *fenced(fence), f"W y {write}"],
            [f"R y {read}", "R x "],
        ],
        (1, 1, 0),
        where,
        verdict,
    )


def iriw(verdict, where, read, fence=""):
    """Independent reads of independent writes: do both readers see the same order?"""
    return Shape(
        "IRIW",
        [
            ["W x relaxed.sys"],
            ["W y relaxed.sys"],
            [f"R x {read}", *fenced(fence), f"R y {read}"],
            [f"R y {read}", *fenced(fence), f"R x {read}"],
        ],
        (1, 0, 1, 0),
        where,
        verdict,
    )


def corr(verdict, where, first, second, write="relaxed.sys"):
    """Two loads of one location: the second gives an older value than the first."""
    return Shape(
        "CoRR", [[f"W x {write}"], [f"R x {first}", f"R x {second}"]], (1, 0), where, verdict
    )


def cowr(order):
    """A thread does not see what it has stored itself. The other thread only takes part."""
    return Shape(
        "CoWR", [[f"W x {order}", f"R x {order}"], ["R x "]], (0, None), GPU, FORBIDDEN
    )


PAIRS = [[0, 2], [1, 3]]  # each writer with a reader
RELAYS = [[0, 1], [2, None]]  # the first two together

SHAPES = [
    mp(SEEN, BLOCK, "relaxed.cta", "relaxed.cta"),
    mp(SEEN, GPU, "relaxed.gpu", "relaxed.gpu"),
    mp(SEEN, SYS, "relaxed.sys", "relaxed.sys"),
    mp(SEEN, GPU, "volatile", "volatile", data="volatile"),
    mp(SEEN, GPU, "relaxed.sys", "relaxed.sys", data="relaxed.sys"),
    mp(FORBIDDEN, BLOCK, "release.cta", "acquire.cta"),
    mp(FORBIDDEN, GPU, "release.gpu", "acquire.gpu"),
    mp(FORBIDDEN, SYS, "release.sys", "acquire.sys"),
    mp(FORBIDDEN, GPU, "release.sys", "acquire.sys", data="relaxed.sys"),
    # one side
    mp(SEEN, GPU, "release.sys", "relaxed.sys"),
    mp(SEEN, GPU, "relaxed.sys", "acquire.sys"),
    mp(SEEN, SYS, "release.sys", "relaxed.sys"),
    mp(SEEN, SYS, "relaxed.sys", "acquire.sys"),
    # scopes
    mp(SEEN, GPU, "release.cta", "acquire.sys"),
    mp(SEEN, GPU, "release.sys", "acquire.cta"),
    mp(SEEN, SYS, "release.cta", "acquire.sys"),
    mp(SEEN, SYS, "release.sys", "acquire.cta"),
    mp(SEEN, SYS, "release.gpu", "acquire.sys"),
    mp(SEEN, SYS, "release.sys", "acquire.gpu"),
    mp(FORBIDDEN, BLOCK, "release.sys", "acquire.cta"),
    mp(FORBIDDEN, BLOCK, "release.cta", "acquire.sys"),
    mp(FORBIDDEN, GPU, "release.sys", "acquire.gpu"),
    # fences
    mp(FORBIDDEN, GPU, "relaxed.sys", "relaxed.sys", "acq_rel.sys", "acq_rel.sys"),
    mp(FORBIDDEN, SYS, "volatile", "volatile", "acq_rel.sys", "acq_rel.sys"),
    mp(FORBIDDEN, GPU, "relaxed.gpu", "relaxed.gpu", "sc.gpu", "sc.gpu"),
    mp(FORBIDDEN, BLOCK, "relaxed.cta", "relaxed.cta", "acq_rel.cta", "acq_rel.cta"),
    mp(SEEN, GPU, "relaxed.sys", "relaxed.sys", "acq_rel.sys", ""),
    mp(SEEN, GPU, "relaxed.sys", "relaxed.sys", "", "acq_rel.sys"),
    mp(SEEN, GPU, "relaxed.sys", "relaxed.sys", "acq_rel.cta", "acq_rel.sys"),
    mp(SEEN, GPU, "relaxed.sys", "relaxed.sys", "sc.cta", "sc.sys"),
    mp(SEEN, GPU, "relaxed.sys", "relaxed.sys", "acq_rel.sys", "acq_rel.cta"),
    mp(SEEN, SYS, "relaxed.sys", "relaxed.sys", "sc.gpu", "sc.sys"),
    # flags that are updated
    mp(SEEN, GPU, "relaxed.gpu", "relaxed.gpu", plus="+"),
    mp(FORBIDDEN, GPU, "release.gpu", "acquire.gpu", plus="+"),
    mp(FORBIDDEN, GPU, "acq_rel.sys", "acq_rel.sys", plus="+"),
    mp(FORBIDDEN, GPU, "relaxed.gpu", "relaxed.gpu", "acq_rel.gpu", "acq_rel.gpu", plus="+"),
    mp(SEEN, GPU, "release.cta", "acquire.gpu", plus="+"),
    mp(SEEN, GPU, "release.gpu", "relaxed.gpu", plus="+"),
    # data that is read as if nobody wrote it
    mp(SEEN, GPU, "release.gpu", "acquire.gpu", last="nc"),
    # shared memory
    mp(SEEN, BLOCK, "relaxed.cta", "acquire.cta", shared=True),
    mp(SEEN, BLOCK, "release.cta", "relaxed.cta", shared=True),
    mp(FORBIDDEN, BLOCK, "release.cta", "acquire.cta", shared=True),
    sb(SEEN, BLOCK, "relaxed.cta", "relaxed.cta"),
    sb(SEEN, GPU, "relaxed.sys", "relaxed.sys"),
    sb(SEEN, SYS, "relaxed.sys", "relaxed.sys"),
    sb(SEEN, GPU, "release.sys", "acquire.sys"),
    sb(SEEN, GPU, "relaxed.sys", "relaxed.sys", "acq_rel.sys"),
    sb(SEEN, SYS, "relaxed.sys", "relaxed.sys", "acq_rel.sys"),
    sb(SEEN, GPU, "relaxed.sys", "relaxed.sys", "sc.cta"),
    sb(SEEN, SYS, "relaxed.sys", "relaxed.sys", "sc.gpu"),
    sb(FORBIDDEN, BLOCK, "relaxed.cta", "relaxed.cta", "sc.cta"),
    sb(FORBIDDEN, GPU, "relaxed.gpu", "relaxed.gpu", "sc.gpu"),
    sb(FORBIDDEN, SYS, "relaxed.sys", "relaxed.sys", "sc.sys"),
    lb(ALLOWED, GPU, "relaxed.sys", "relaxed.sys"),
    lb(FORBIDDEN, GPU, "acquire.sys", "relaxed.sys"),
    lb(FORBIDDEN, GPU, "relaxed.sys", "release.sys"),
    wrc(ALLOWED, GPU, "relaxed.sys", "acquire.sys"),
    wrc(SEEN, RELAYS, "relaxed.sys", "acquire.sys"),
    wrc(SEEN, GPU, "release.sys", "relaxed.sys"),
    wrc(SEEN, RELAYS, "release.cta", "acquire.sys"),
    wrc(FORBIDDEN, GPU, "release.sys", "acquire.sys"),
    wrc(FORBIDDEN, RELAYS, "release.sys", "acquire.sys"),
    wrc(FORBIDDEN, RELAYS, "release.gpu", "acquire.gpu"),
    wrc(FORBIDDEN, BLOCK, "release.cta", "acquire.cta"),
    iriw(SEEN, GPU, "relaxed.sys"),
    iriw(SEEN, PAIRS, "relaxed.sys"),
    iriw(SEEN, PAIRS, "acquire.sys"),
    iriw(ALLOWED, PAIRS, "relaxed.sys", "acq_rel.sys"),
    iriw(FORBIDDEN, PAIRS, "relaxed.sys", "sc.sys"),
    iriw(FORBIDDEN, GPU, "relaxed.sys", "sc.sys"),
    corr(SEEN, GPU, "", ""),
    corr(SEEN, SYS, "", "relaxed.sys"),
    corr(FORBIDDEN, GPU, "relaxed.sys", "relaxed.sys"),
    corr(FORBIDDEN, GPU, "relaxed.gpu", "", "relaxed.gpu"),
    corr(FORBIDDEN, BLOCK, "relaxed.cta", "", "relaxed.cta"),
    corr(FORBIDDEN, SYS, "volatile", "", "volatile"),
    corr(ALLOWED, GPU, "relaxed.cta", "relaxed.cta"),
    cowr(""),
    cowr("relaxed.sys"),
    # a barrier orders for the block what one of its threads has acquired
    Shape("bar", [["W x ", "B"], ["R x ", "B", "R x "]], (None, 0), BLOCK, FORBIDDEN),
    Shape(
        "MP and bar",
        [["W x ", "W y release.sys"], ["R y acquire.sys", "B"], ["R x ", "B", "R x "]],
        (1, None, 0),
        [[0, None], [1, 2]],
        FORBIDDEN,
    ),
    Shape(
        "MP and bar",
        [["W x ", "W y release.sys"], ["R y relaxed.sys", "B"], ["R x ", "B", "R x "]],
        (1, None, 0),
        [[0, None], [1, 2]],
        SEEN,
    ),
    Shape(  # what other threads of the block have stored, a release after a barrier is for, too
        "bar and MP",
        [["W x ", "B"], ["B", "W y release.sys"], ["R y acquire.sys", "R x "]],
        (1, 0),
        RELAYS,
        FORBIDDEN,
    ),
    Shape(
        "bar and MP",
        [["W x ", "B"], ["B", "W y release.cta"], ["R y acquire.sys", "R x "]],
        (1, 0),
        RELAYS,
        SEEN,
    ),
]
