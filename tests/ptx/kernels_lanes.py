"""Lanes of a warp that part at branches: where they meet again, and what waits for what."""

from kernel import Kernel

GIVES_UP = 0xDEAD

SPIN = """
    mov.u32 %a1, 0;
{label}:
    ld.volatile.shared.u32 %a2, [{word}];
    setp.ne.u32 %p2, %a2, 0;
    @%p2 bra {label}_over;
    add.u32 %a1, %a1, 1;
    setp.lt.u32 %p3, %a1, 3000;
    @%p3 bra {label};
    mov.u32 %d, {gives_up};
{label}_over:
"""


def spin(label, word):
    return SPIN.format(label=label, word=word, gives_up=GIVES_UP)


def active(register):
    """How many lanes run together here."""
    return f"    activemask.b32 {register};\n    popc.b32 {register}, {register};\n"


KERNELS = [
    Kernel(  # lane 0 waits for what the others do at the other side of a branch
        "lanes_spin",
        lambda t: 1,
        """
    mov.u32 %d, 1;
    setp.ne.u32 %p1, %t, 0;
    st.volatile.shared.u32 [lanes_flag], 0;
    bar.warp.sync -1;
    @%p1 bra others;
"""
        + spin("lanes_wait", "lanes_flag")
        + """
    bra done;
others:
    st.volatile.shared.u32 [lanes_flag], 1;
done:
""",
        outside=".shared .b32 lanes_flag;\n",
        in_step=lambda t: GIVES_UP if t == 0 else 1,
    ),
    Kernel(  # who has the lock waits, behind the loop, for those that want it: so many give up
        "lanes_lock",
        lambda t: 0,
        """
    st.volatile.shared.u32 [lanes_word], 0;
    bar.warp.sync -1;
    mov.u32 %a1, 0;
try:
    atom.shared.cas.b32 %a2, [lanes_word], 0, 1;
    setp.eq.u32 %p1, %a2, 0;
    @%p1 bra has;
    add.u32 %a1, %a1, 1;
    setp.lt.u32 %p2, %a1, 3000;
    @%p2 bra try;
    mov.u32 %d, 0xdead;
has:
    atom.shared.exch.b32 %a2, [lanes_word], 0;
    setp.ne.u32 %p1, %d, 0;
    vote.sync.ballot.b32 %d, %p1, -1;
    popc.b32 %d, %d;
""",
        outside=".shared .b32 lanes_word;\n",
        in_step=lambda t: 31,
    ),
    Kernel(  # the two sides of a branch, and behind it
        "lanes_meet",
        lambda t: None,
        """
    setp.lt.u32 %p1, %t, 5;
    @%p1 bra few;
"""
        + active("%a1")
        + """
    bra meet;
few:
"""
        + active("%a1")
        + """
meet:
"""
        + active("%a2")
        + """
    mad.lo.u32 %d, %a2, 100, %a1;
""",
        in_step=lambda t: 3205 if t < 5 else 3227,
    ),
    Kernel(  # a loop that lane t leaves after t rounds; a branch within; and behind it
        "lanes_loop",
        lambda t: None,
        """
    mov.u32 %a1, 0;
    mov.u32 %a3, 0;
rounds:
    and.b32 %a2, %t, 1;
    setp.eq.u32 %p1, %a2, 0;
    @%p1 bra even;
    add.u32 %a3, %a3, 1;
even:
"""
        + active("%a4")
        + """
    add.u32 %d, %d, %a4;
    add.u32 %a1, %a1, 1;
    setp.le.u32 %p2, %a1, %t;
    @%p2 bra rounds;
"""
        + active("%a4")
        + """
    mad.lo.u32 %d, %a4, 1000, %d;
""",
        in_step=lambda t: 32000 + sum(32 - round for round in range(t + 1)),
    ),
    Kernel(  # a function from which some lanes return early, and a branch with many ways
        "lanes_function",
        lambda t: None,
        """
    {
        .param .b32 value;
        .param .b32 answer;
        st.param.b32 [value], %t;
        call.uni (answer), lanes_part, (value);
        ld.param.b32 %d, [answer];
    }
"""
        + active("%a1")
        + """
    mad.lo.u32 %d, %a1, 100, %d;
    and.b32 %a2, %t, 3;
    lanes_ways: .branchtargets way0, way1, way1, way3;
    brx.idx %a2, lanes_ways;
way1:
"""
        + active("%a3")
        + """
    bra over;
way0:
    mov.u32 %a3, 1;
    bra over;
way3:
"""
        + active("%a3")
        + """
over:
    mad.lo.u32 %d, %a3, 10000, %d;
"""
        + active("%a1")
        + """
    mad.lo.u32 %d, %a1, 1000000, %d;
""",
        outside="""
.func (.param .b32 answer) lanes_part(.param .b32 value)
{
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.u32 %r1, [value];
    st.param.b32 [answer], 3;
    setp.lt.u32 %p, %r1, 7;
    @%p ret;
    activemask.b32 %r2;
    popc.b32 %r2, %r2;
    st.param.b32 [answer], %r2;
    ret;
}
""",
        in_step=lambda t: 32003200
        + (3 if t < 7 else 25)
        + 10000 * (1 if t % 4 == 0 else 8 if t % 4 == 3 else 16),
    ),
    Kernel(  # lanes that end within a branch are not waited for
        "lanes_leave",
        lambda t: None if t < 8 else 24,
        """
    setp.ge.u32 %p1, %t, 8;
    @%p1 bra stay;
    setp.ge.u32 %p1, %t, 4;
    @%p1 exit;
    exit;
stay:
    activemask.b32 %a1;
    bar.warp.sync %a1;
    setp.eq.u32 %p1, %t, %t;
    vote.sync.ballot.b32 %d, %p1, -1;
    popc.b32 %d, %d;
""",
        in_step=lambda t: None if t < 8 else 24,
    ),
]
