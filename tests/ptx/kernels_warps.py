"""What the lanes of a warp do together."""

from kernel import Kernel


def value(lane):
    """What each lane hands in."""
    return lane * 7919 % 1009


HAND_IN = """
    mul.lo.u32 %a1, %t, 7919;
    rem.u32 %a1, %a1, 1009;
"""


def source(kind, lane, by, width):
    """The lane that is read, and whether it is in the segment; for segments of `width` lanes."""
    first, at = lane // width * width, lane % width
    wanted = {"up": at - by, "down": at + by, "bfly": at ^ by, "idx": by % width}[kind]
    inside = 0 <= wanted < width or (kind == "bfly" and lane ^ by < first)  # of earlier ones, too
    if kind == "bfly" and inside:
        return lane ^ by, inside
    return (first + wanted if inside else lane), inside


KERNELS = []
for KIND in ("up", "down", "bfly", "idx"):
    for WIDTH in (32, 16, 4):
        for BY in (0, 1, 3, 5):
            C = 32 - WIDTH << 8 | (0 if KIND == "up" else 31)

            def want(t, kind=KIND, by=BY, width=WIDTH):
                lane, inside = source(kind, t, by, width)
                return value(lane) + (10000 if inside else 0)

            KERNELS.append(
                Kernel(
                    f"shfl_{KIND}_{WIDTH}_{BY}",
                    want,
                    HAND_IN
                    + f"""
    shfl.sync.{KIND}.b32 %d|%p1, %a1, {BY}, {C:#x}, -1;
    @%p1 add.u32 %d, %d, 10000;
""",
                )
            )

ODD = range(1, 32, 2)
# Half of the lanes, and what they do.
HALF = """
    and.b32 %a2, %t, 1;
    setp.eq.u32 %p2, %a2, 0;
    @%p2 bra done;
{text}
done:
"""


def among_odd(name, want, text):
    """Only odd lanes take part."""
    KERNELS.append(
        Kernel(name, lambda t: want(t) if t % 2 else 0, HAND_IN + HALF.format(text=text))
    )


MASK = "0xaaaaaaaa"
SIGNED = "    sub.u32 %a1, %a1, 500;\n"
among_odd("redux_add", lambda t: sum(map(value, ODD)), f"redux.sync.add.u32 %d, %a1, {MASK};")
among_odd("redux_min", lambda t: min(map(value, ODD)), f"redux.sync.min.u32 %d, %a1, {MASK};")
among_odd("redux_max", lambda t: max(map(value, ODD)), f"redux.sync.max.u32 %d, %a1, {MASK};")
among_odd(
    "redux_min_signed",
    lambda t: min(value(i) - 500 for i in ODD) & 0xFFFFFFFF,
    SIGNED + f"redux.sync.min.s32 %d, %a1, {MASK};",
)
among_odd(
    "redux_max_signed",
    lambda t: max(value(i) - 500 for i in ODD) & 0xFFFFFFFF,
    SIGNED + f"redux.sync.max.s32 %d, %a1, {MASK};",
)
among_odd(
    "redux_add_signed",
    lambda t: sum(value(i) - 500 for i in ODD) & 0xFFFFFFFF,
    SIGNED + f"redux.sync.add.s32 %d, %a1, {MASK};",
)


def over(operation):
    result = value(1)
    for lane in ODD[1:]:
        result = operation(result, value(lane))
    return result


among_odd("redux_and", lambda t: over(int.__and__), f"redux.sync.and.b32 %d, %a1, {MASK};")
among_odd("redux_or", lambda t: over(int.__or__), f"redux.sync.or.b32 %d, %a1, {MASK};")
among_odd("redux_xor", lambda t: over(int.__xor__), f"redux.sync.xor.b32 %d, %a1, {MASK};")
SMALL = "    setp.lt.u32 %p1, %a1, {};\n"
ONE = "    selp.u32 %d, 1, 2, %p3;\n"
among_odd(
    "vote_ballot",
    lambda t: sum(1 << i for i in ODD if value(i) < 400),
    SMALL.format(400) + f"vote.sync.ballot.b32 %d, %p1, {MASK};",
)
for NAME, LIMIT, YES in (
    ("any", 0, 0),
    ("any", 400, 1),
    ("all", 400, 0),
    ("all", 2000, 1),
    ("uni", 400, 0),
    ("uni", 0, 1),
    ("uni", 2000, 1),
):
    among_odd(
        f"vote_{NAME}_{LIMIT}",
        lambda t, yes=YES: 1 if yes else 2,
        SMALL.format(LIMIT) + f"vote.sync.{NAME}.pred %p3, %p1, {MASK};\n" + ONE,
    )
among_odd(
    "vote_not",
    lambda t: 1,
    SMALL.format(0) + f"vote.sync.all.pred %p3, !%p1, {MASK};\n" + ONE,
)
THIRDS = "    rem.u32 %a3, %t, 3;\n    cvt.u64.u32 %l1, %a3;\n    shl.b64 %l1, %l1, 40;\n"
for TYPE, REGISTER in (("b32", "%a3"), ("b64", "%l1")):
    among_odd(
        f"match_any_{TYPE}",
        lambda t: sum(1 << i for i in ODD if i % 3 == t % 3),
        THIRDS + f"match.any.sync.{TYPE} %d, {REGISTER}, {MASK};",
    )
    among_odd(
        f"match_all_not_{TYPE}",
        lambda t: 2,
        THIRDS + f"match.all.sync.{TYPE} %d|%p3, {REGISTER}, {MASK};\n    add.u32 %d, %d, 2;",
    )
among_odd(
    "match_all",
    lambda t: 0xAAAAAAAA + 3,
    f"mov.u32 %a4, 6;\n    match.all.sync.b32 %d|%p3, %a4, {MASK};\n    @%p3 add.u32 %d, %d, 3;",
)
