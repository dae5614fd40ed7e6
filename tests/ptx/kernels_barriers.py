"""Barriers of a block with numbers, and that of a cluster."""

from kernel import NOT_IN_STEP, Kernel

def shared(name, words=64):
    return f".shared .align 16 .b32 {name}[{words}];\n"


def delay(name, rounds=400):
    """A thread that comes late: others have many turns meanwhile."""
    return f"""
    mov.u32 %a15, 0;
{name}:
    nanosleep.u32 20;
    add.u32 %a15, %a15, 1;
    setp.lt.u32 %p7, %a15, {rounds};
    @%p7 bra {name};
"""


KERNELS = [
    Kernel(
        "barrier_0_arrive",
        lambda t: t + 32 + 7 if t < 32 else 0,
        f"""
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra consumer;
{delay("barrier_0_late")}
    shl.b32 %a1, %t, 2;
    mov.u32 %a2, barrier_0_words;
    add.u32 %a1, %a1, %a2;
    add.u32 %a3, %t, 7;
    st.shared.u32 [%a1], %a3;
    bar.arrive 0, 64;
    bra done;
consumer:
    bar.sync 0, 64;
    shl.b32 %a1, %t, 2;
    mov.u32 %a2, barrier_0_words;
    add.u32 %a1, %a1, %a2;
    ld.shared.u32 %d, [%a1+128];
done:
    bar.sync 1, 64;
""",
        threads=64,
        outside=shared("barrier_0_words"),
    ),
    Kernel(
        "barrier_16",
        None,
        """
    mov.u32 %a1, 16;
    barrier.sync %a1, 32;
""",
    ),
    Kernel(
        "barrier_part_of_warp",
        None,
        """
    mov.u32 %a1, 20;
    barrier.sync 1, %a1;
""",
        threads=64,
    ),
    Kernel(
        "barrier_block_of_48",
        lambda t: 47 - t,
        """
    shl.b32 %a1, %t, 2;
    mov.u32 %a2, barrier_48_words;
    add.u32 %a1, %a1, %a2;
    st.shared.u32 [%a1], %t;
    bar.sync 1, 64;
    sub.u32 %a3, 47, %t;
    shl.b32 %a1, %a3, 2;
    add.u32 %a1, %a1, %a2;
    ld.shared.u32 %d, [%a1];
""",
        threads=48,
        outside=shared("barrier_48_words"),
    ),
    Kernel(
        "barrier_after_some_have_left",
        lambda t: None if 34 <= t < 40 else 58,
        """
    setp.ge.u32 %p1, %t, 34;
    setp.lt.and.u32 %p1, %t, 40, %p1;
    @%p1 exit;
    setp.ge.u32 %p2, %t, 0;
    barrier.red.popc.u32 %d, 1, 64, %p2;
""",
        threads=64,
    ),
    Kernel(
        "barrier_while_some_leave",
        lambda t: None if 34 <= t < 40 else 58,
        f"""
    setp.ge.u32 %p1, %t, 34;
    setp.lt.and.u32 %p1, %t, 40, %p1;
    @!%p1 bra stay;
{delay("barrier_leave_late")}
    exit;
stay:
    setp.ge.u32 %p2, %t, 0;
    barrier.red.popc.u32 %d, 3, %p2;
""",
        threads=64,
    ),
    Kernel(
        "barrier_warp_has_left",
        lambda t: None if t >= 64 else 5,
        f"""
    setp.ge.u32 %p1, %t, 64;
    @!%p1 bra stay;
{delay("barrier_warp_late")}
    exit;
stay:
    setp.lt.u32 %p2, %t, 5;
    bar.red.popc.u32 %d, 2, %p2;
""",
        threads=96,
    ),
    Kernel(
        "barrier_red",
        lambda t: 3 | 0 << 8 | 1 << 9 | 0 << 10 | 1 << 11,
        """
    setp.lt.u32 %p1, %t, 3;
    bar.red.popc.u32 %d, 4, 64, %p1;
    bar.red.and.pred %p2, 4, 64, %p1;
    bar.red.or.pred %p3, 4, 64, %p1;
    setp.gt.u32 %p1, %t, 99;
    bar.red.or.pred %p4, 4, 64, %p1;
    bar.red.and.pred %p5, 4, 64, !%p1;
    @%p2 or.b32 %d, %d, 256;
    @%p3 or.b32 %d, %d, 512;
    @%p4 or.b32 %d, %d, 1024;
    @%p5 or.b32 %d, %d, 2048;
""",
        threads=64,
    ),
    Kernel(
        "barrier_red_named",
        lambda t: 30 + 1000,
        """
    setp.lt.u32 %p1, %t, 30;
    bar.cta.red.popc.u32 %d, 0, %p1;
    barrier.cta.red.or.aligned.pred %p2, 9, 64, %p1;
    @%p2 add.u32 %d, %d, 1000;
""",
        threads=64,
    ),
    Kernel(  # lane t writes late what the next one reads
        "barrier_of_warp",
        lambda t: (t + 1) % 32,
        """
    shl.b32 %a1, %t, 2;
    mov.u32 %a2, barrier_warp_words;
    add.u32 %a1, %a1, %a2;
"""
        + delay("barrier_warp_late_lane", 3)
        + """
    st.shared.u32 [%a1], %t;
    bar.warp.sync -1;
    add.u32 %a3, %t, 1;
    and.b32 %a3, %a3, 31;
    shl.b32 %a3, %a3, 2;
    add.u32 %a3, %a3, %a2;
    ld.shared.u32 %d, [%a3];
""",
        outside=shared("barrier_warp_words"),
    ),
    Kernel(
        "barrier_of_two_places",
        lambda t: 100 + t % 2,
        f"""
    and.b32 %a1, %t, 1;
    setp.ne.u32 %p1, %a1, 0;
    @%p1 bra odd;
    barrier.sync 5, 64;
    mov.u32 %d, 100;
    bra done;
odd:
{delay("barrier_two_late", 20)}
    barrier.sync 5, 64;
    mov.u32 %d, 101;
done:
""",
        threads=64,
        in_step=NOT_IN_STEP,
    ),
    Kernel(
        "barrier_ping_pong",
        lambda t: sum(range(1, 51)) if t < 32 else 50,
        """
    mov.u32 %a1, 0;
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra consumer;
producer:
    barrier.sync 6, 64;
    add.u32 %a1, %a1, 1;
    st.shared.u32 [barrier_word], %a1;
    barrier.arrive 7, 64;
    setp.lt.u32 %p2, %a1, 50;
    @%p2 bra producer;
    mov.u32 %d, %a1;
    bra done;
consumer:
    barrier.arrive 6, 64;
    barrier.sync 7, 64;
    ld.shared.u32 %a2, [barrier_word];
    add.u32 %d, %d, %a2;
    add.u32 %a1, %a1, 1;
    setp.lt.u32 %p2, %a1, 50;
    @%p2 bra consumer;
done:
""",
        threads=64,
        outside=".shared .b32 barrier_word;\n",
    ),
    Kernel(
        "cluster_barrier_of_one_that_left",
        lambda t: None if t == 0 else 77,
        f"""
    setp.eq.u32 %p1, %t, 0;
    @!%p1 bra others;
    mov.u32 %a1, 0;
    st.shared.u32 [cluster_word], %a1;
    barrier.cluster.arrive;
    exit;
others:
    setp.ne.u32 %p1, %t, 1;
    @%p1 bra wait;
{delay("cluster_late")}
    mov.u32 %a1, 77;
    st.shared.u32 [cluster_word], %a1;
wait:
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    ld.shared.u32 %d, [cluster_word];
""",
        threads=64,
        outside=".shared .b32 cluster_word;\n",
    ),
    Kernel(
        "cluster_barrier_rounds",
        lambda t: 20 * 64,
        """
    mov.u32 %a1, 0;
    st.shared.u32 [cluster_count], %a1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
rounds:
    atom.shared.add.u32 %a2, [cluster_count], 1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %a1, %a1, 1;
    mul.lo.u32 %a3, %a1, 64;
    ld.shared.u32 %d, [cluster_count];
    setp.ne.u32 %p1, %d, %a3;
    @%p1 bra done;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.lt.u32 %p1, %a1, 20;
    @%p1 bra rounds;
done:
""",
        threads=64,
        outside=".shared .b32 cluster_count;\n",
    ),
]
