"""Barriers in memory, and copies, stores and reductions that tell one when they are done."""

from kernel import Kernel

TX = "mbarrier::complete_tx::bytes"


def shared(name, words):
    return f".shared .align 16 .b32 {name}[{words}];\n"


def barrier(name):
    return f".shared .align 8 .b64 {name};\n"


def begin(name, count):
    """Thread 0 makes the barrier, before all others use it."""
    return f"""
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared::cta.b64 [{name}], {count};
    bar.sync 0;
"""


def late(label, rounds=200):
    return f"""
    mov.u32 %a15, 0;
{label}:
    nanosleep.u32 20;
    add.u32 %a15, %a15, 1;
    setp.lt.u32 %p7, %a15, {rounds};
    @%p7 bra {label};
"""


def await_parity(name, parity, label):
    return f"""
{label}:
    mbarrier.try_wait.parity.shared::cta.b64 %p6, [{name}], {parity};
    @!%p6 bra {label};
"""


def bits(*instructions):
    """Each instruction leaves %p1: a bit of the result, the first is the lowest."""
    return "\n".join(
        f"    {text}\n    selp.u32 %a14, {1 << i}, 0, %p1;\n    or.b32 %d, %d, %a14;"
        for i, text in enumerate(instructions)
    )


def test(parity, name="states_barrier"):
    return f"mbarrier.test_wait.parity.shared::cta.b64 %p1, [{name}], {parity};"


WORDS = ".global .align 16 .b32 async_words[8] = {11, 22, 33, 44, 55, 66, 77, 88};\n"

KERNELS = [
    Kernel(  # parity 1 has ended from the beginning; 0 ends with the last of two arrivals
        "mbarrier_parity",
        lambda t: 0b100110,
        begin("states_barrier", 2)
        + bits(
            test(0),
            test(1),
            "mbarrier.arrive.shared::cta.b64 %l1, [states_barrier]; " + test(1),
            test(0),
            "mbarrier.arrive.shared::cta.b64 _, [states_barrier]; " + test(1),
            test(0),
        ),
        threads=1,
        outside=barrier("states_barrier"),
    ),
    Kernel(  # by states; pending counts; a count; a generic address
        "mbarrier_states",
        lambda t: 5 | 2 << 4 | 0 << 8 | 1 << 9 | 5 << 12,
        begin("counts_barrier", 5)
        + """
    cvta.shared.u64 %l4, counts_barrier;
    mov.u64 %l5, counts_barrier;
    cvta.shared.u64 %l4, %l5;
    mbarrier.arrive.b64 %l1, [%l4], 3;
    mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %l2, [counts_barrier], 1;
    mbarrier.pending_count.b64 %a1, %l1;
    mbarrier.pending_count.b64 %a2, %l2;
    shl.b32 %a2, %a2, 4;
    or.b32 %d, %a1, %a2;
    mbarrier.test_wait.b64 %p1, [%l4], %l1;
    selp.u32 %a3, 256, 0, %p1;
    or.b32 %d, %d, %a3;
    mbarrier.arrive.release.cta.shared::cta.b64 %l2, [counts_barrier];
    mbarrier.test_wait.acquire.cta.shared::cta.b64 %p1, [counts_barrier], %l2;
    selp.u32 %a3, 512, 0, %p1;
    or.b32 %d, %d, %a3;
    mbarrier.arrive.shared::cta.b64 %l3, [counts_barrier];
    mbarrier.pending_count.b64 %a1, %l3;
    shl.b32 %a1, %a1, 12;
    or.b32 %d, %d, %a1;
    mbarrier.inval.shared::cta.b64 [counts_barrier];
""",
        threads=1,
        outside=barrier("counts_barrier"),
    ),
    Kernel(  # one leaves for good: the next phase ends without it
        "mbarrier_drop",
        lambda t: 0b1010,
        begin("drop_barrier", 3)
        + bits(
            "mbarrier.arrive_drop.shared::cta.b64 _, [drop_barrier]; "
            "mbarrier.arrive.shared::cta.b64 _, [drop_barrier]; " + test(0, "drop_barrier"),
            "mbarrier.arrive.shared::cta.b64 _, [drop_barrier]; " + test(0, "drop_barrier"),
            "mbarrier.arrive.shared::cta.b64 _, [drop_barrier]; " + test(1, "drop_barrier"),
            "mbarrier.arrive.shared::cta.b64 _, [drop_barrier]; " + test(1, "drop_barrier"),
        ),
        threads=1,
        outside=barrier("drop_barrier"),
    ),
    Kernel(  # bytes hold a phase open, also those that complete before they are expected
        "mbarrier_bytes",
        lambda t: 0b110010,
        begin("bytes_barrier", 1)
        + bits(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bytes_barrier], 48; "
            "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bytes_barrier], 32; "
            + test(0, "bytes_barrier"),
            "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bytes_barrier], 16; "
            + test(0, "bytes_barrier"),
            "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bytes_barrier], 64; "
            + test(1, "bytes_barrier"),
            "mbarrier.arrive.shared::cta.b64 _, [bytes_barrier]; " + test(1, "bytes_barrier"),
            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bytes_barrier], 64; "
            + test(1, "bytes_barrier"),
            "mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 %l1, [bytes_barrier], 8; "
            "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bytes_barrier], 8; "
            + test(0, "bytes_barrier"),
        ),
        threads=1,
        outside=barrier("bytes_barrier"),
    ),
    Kernel("mbarrier_no_count", None, begin("none_barrier", 0), 1, barrier("none_barrier")),
    Kernel(
        "mbarrier_too_many",
        None,
        begin("many_barrier", 2) + "    mbarrier.arrive.shared::cta.b64 _, [many_barrier], 3;\n",
        1,
        barrier("many_barrier"),
    ),
    Kernel(  # consumers see what the producers of each phase have stored
        "mbarrier_rounds",
        lambda t: sum(range(1, 21)) * 32 if t < 32 else 20,
        begin("full_barrier", 32)
        + """
    @%p0 mbarrier.init.shared::cta.b64 [empty_barrier], 32;
    @%p0 st.shared.u32 [rounds_sum], 0;
    bar.sync 0;
    mov.u32 %a1, 0;
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra consumer;
producer:
    xor.b32 %a2, %a1, 1;
    and.b32 %a2, %a2, 1;
"""
        + await_parity("empty_barrier", "%a2", "produce_wait")
        + """
    add.u32 %a1, %a1, 1;
    red.shared.add.u32 [rounds_sum], %a1;
    mbarrier.arrive.shared::cta.b64 %l1, [full_barrier];
    setp.lt.u32 %p2, %a1, 20;
    @%p2 bra producer;
    mov.u32 %d, %a1;
    bra done;
consumer:
    and.b32 %a2, %a1, 1;
"""
        + await_parity("full_barrier", "%a2", "consume_wait")
        + """
    ld.shared.u32 %d, [rounds_sum];
    add.u32 %a1, %a1, 1;
    mbarrier.arrive.shared::cta.b64 %l1, [empty_barrier];
    setp.lt.u32 %p2, %a1, 20;
    @%p2 bra consumer;
done:
""",
        threads=64,
        outside=barrier("full_barrier") + barrier("empty_barrier") + shared("rounds_sum", 1),
    ),
    Kernel(  # a whole and two parts: the rest is 0; a source that is ignored
        "copy_async",
        lambda t: 11 + 44 + 0x16 * 100 + 77 * 1000,
        """
    mov.u32 %a1, -1;
    st.shared.v4.u32 [copy_to], {%a1, %a1, %a1, %a1};
    st.shared.v4.u32 [copy_to+16], {%a1, %a1, %a1, %a1};
    st.shared.v4.u32 [copy_to+32], {%a1, %a1, %a1, %a1};
    mov.u64 %l1, async_words;
    cp.async.cg.shared.global.L2::128B [copy_to], [%l1], 16;
    cp.async.ca.shared::cta.global [copy_to+16], [%l1+4], 8, 1;
    cp.async.ca.shared.global [copy_to+24], [%l1+24], 4;
    setp.eq.u32 %p1, %t, %t;
    cp.async.ca.shared.global.L2::cache_hint [copy_to+32], [%l1], 8, %p1, %l2;
    cp.async.commit_group;
    cp.async.wait_group 0;
    cp.async.wait_all;
    ld.shared.u32 %a1, [copy_to];
    ld.shared.u32 %a2, [copy_to+12];
    add.u32 %d, %a1, %a2;
    ld.shared.u32 %a1, [copy_to+16];
    mad.lo.u32 %d, %a1, 100, %d;
    ld.shared.u32 %a1, [copy_to+20];
    add.u32 %d, %d, %a1;
    ld.shared.u32 %a1, [copy_to+24];
    mad.lo.u32 %d, %a1, 1000, %d;
    ld.shared.u32 %a1, [copy_to+28];
    add.u32 %d, %d, %a1;
    add.u32 %d, %d, 1;
    ld.shared.u32 %a1, [copy_to+36];
    add.u32 %d, %d, %a1;
    ld.shared.u32 %a1, [copy_to+40];
    add.u32 %d, %d, %a1;
    add.u32 %d, %d, 1;
""",
        threads=1,
        outside=WORDS + shared("copy_to", 12),
    ),
    Kernel(  # .noinc arrives; without it the arrival is due in addition
        "copy_async_arrives",
        lambda t: 0b10,
        begin("copy_barrier", 1)
        + bits(
            "cp.async.mbarrier.arrive.shared::cta.b64 [copy_barrier]; " + test(0, "copy_barrier"),
            "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [copy_barrier]; "
            + test(0, "copy_barrier"),
        ),
        threads=1,
        outside=barrier("copy_barrier"),
    ),
    Kernel(  # global to shared, within shared, and back
        "copy_bulk",
        lambda t: 55 + 88 * 100 + 33 * 10000,
        begin("bulk_barrier", 1)
        + f"""
    setp.eq.u32 %p1, %t, 0;
    @!%p1 bra wait;
{late("bulk_late")}
    mbarrier.arrive.expect_tx.shared::cta.b64 %l1, [bulk_barrier], 48;
    mov.u64 %l2, async_words;
    cp.async.bulk.shared::cluster.global.{TX} [bulk_first], [%l2], 32, [bulk_barrier];
    cp.async.bulk.shared::cluster.shared::cta.{TX}
        [bulk_second], [bulk_first+16], 16, [bulk_barrier];
wait:
{await_parity("bulk_barrier", 0, "bulk_wait")}
    ld.shared.u32 %d, [bulk_second];
    ld.shared.u32 %a1, [bulk_first+28];
    mad.lo.u32 %d, %a1, 100, %d;
    @!%p1 bra last;
    mov.u64 %l2, bulk_back;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%l2], [bulk_first], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    cp.async.bulk.wait_group 0;
last:
    bar.sync 0;
    ld.global.u32 %a1, [bulk_back+8];
    mad.lo.u32 %d, %a1, 10000, %d;
""",
        outside=barrier("bulk_barrier")
        + shared("bulk_first", 8)
        + shared("bulk_second", 4)
        + ".global .align 16 .b32 bulk_back[4];\n",
    ),
    Kernel(  # to the blocks of a mask: there is one
        "copy_bulk_multicast",
        lambda t: 22 + 1000,
        begin("cast_barrier", 1)
        + f"""
    mov.u64 %l2, async_words;
    mov.u16 %h1, 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %l1, [cast_barrier], 16;
    cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster.L2::cache_hint
        [cast_to], [%l2], 16, [cast_barrier], %h1, %l3;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [cast_barrier], 0;
    ld.shared.u32 %d, [cast_to+4];
    @%p1 add.u32 %d, %d, 1000;
""",
        1,
        barrier("cast_barrier") + shared("cast_to", 4),
    ),
    Kernel(
        "copy_bulk_of_20_bytes",
        None,
        f"""
    mov.u64 %l2, async_words;
    mbarrier.init.shared::cta.b64 [size_barrier], 1;
    cp.async.bulk.shared::cluster.global.{TX} [size_to], [%l2], 20, [size_barrier];
""",
        1,
        barrier("size_barrier") + shared("size_to", 8),
    ),
    Kernel(  # each byte of 16 whose bit is set
        "copy_bulk_mask",
        lambda t: 0xFFFF0BFF,
        """
    mov.u32 %a1, -1;
    mov.u64 %l1, mask_to;
    st.global.v4.u32 [%l1], {%a1, %a1, %a1, %a1};
    st.shared.u32 [mask_from], 0x01020304;
    st.shared.u32 [mask_from+4], 0x090a0b0c;
    mov.u16 %h1, 0x20;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%l1], [mask_from], 16, %h1;
    ld.global.u32 %d, [%l1+4];
""",
        threads=1,
        outside=shared("mask_from", 4) + ".global .align 16 .b32 mask_to[4];\n",
    ),
    Kernel(
        "reduce_bulk",
        lambda t: (11 + 5) + (3 + 2 * 100) * 100 + 1000000,
        begin("reduce_barrier", 1)
        + f"""
    mov.u64 %l1, reduce_global;
    st.shared.v4.u32 [reduce_from], {{5, 2, 9, 1}};
    st.shared.v4.u32 [reduce_to], {{7, 3, 1, 1}};
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%l1], [reduce_from], 16;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [reduce_barrier], 16;
    cp.reduce.async.bulk.shared::cluster.shared::cta.{TX}.max.u32
        [reduce_to], [reduce_from], 16, [reduce_barrier];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [reduce_barrier], 0;
    ld.global.u32 %d, [%l1];
    ld.shared.u32 %a1, [reduce_to+4];
    ld.global.u32 %a2, [%l1+12];
    mad.lo.u32 %a1, %a2, 100, %a1;
    mad.lo.u32 %d, %a1, 100, %d;
    @%p1 add.u32 %d, %d, 1000000;
""",
        threads=1,
        outside=barrier("reduce_barrier")
        + shared("reduce_from", 4)
        + shared("reduce_to", 4)
        + ".global .align 16 .b32 reduce_global[4] = {11, 0, 0, 1};\n",
    ),
    Kernel(
        "store_async",
        lambda t: 100 + 23 * 10 + 500,
        begin("store_barrier", 1)
        + f"""
    mov.u32 %a1, 23;
    mov.u32 %a2, 100;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [store_barrier], 12;
    st.async.shared::cluster.{TX}.v2.b32 [store_to], {{%a1, %a2}}, [store_barrier];
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [store_barrier], 0;
    st.async.weak.shared::cluster.{TX}.u32 [store_to+8], %a1, [store_barrier];
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [store_barrier], 0;
    ld.shared.u32 %d, [store_to+4];
    ld.shared.u32 %a3, [store_to+8];
    mad.lo.u32 %d, %a3, 10, %d;
    @%p1 add.u32 %d, %d, 10000;
    @%p2 add.u32 %d, %d, 500;
""",
        threads=1,
        outside=barrier("store_barrier") + shared("store_to", 4),
    ),
    Kernel(
        "red_async",
        lambda t: 4000 + 7 * 32 + 9,
        begin("red_barrier", 1)
        + f"""
    @%p0 st.shared.u32 [red_to], 0;
    @%p0 st.shared.u32 [red_to+4], 3;
    @%p0 st.shared.u64 [red_to+8], 1000;
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [red_barrier], {32 * 16};
    bar.sync 0;
    red.async.relaxed.cluster.shared::cluster.{TX}.add.u32 [red_to], 7, [red_barrier];
    red.async.relaxed.cluster.shared::cluster.{TX}.max.s32 [red_to+4], 9, [red_barrier];
    setp.lt.u32 %p1, %t, 3;
    selp.u64 %l1, 1000, 0, %p1;
    red.async.relaxed.cluster.shared::cluster.{TX}.add.u64 [red_to+8], %l1, [red_barrier];
{await_parity("red_barrier", 0, "red_wait")}
    ld.shared.u32 %d, [red_to];
    ld.shared.u32 %a1, [red_to+4];
    add.u32 %d, %d, %a1;
    ld.shared.u32 %a1, [red_to+8];
    add.u32 %d, %d, %a1;
""",
        outside=barrier("red_barrier") + shared("red_to", 4),
    ),
    Kernel(  # one of the lanes, and it is one of the mask
        "elect_one",
        lambda t: (4 if t == 4 else 0) + 100 if t >= 4 else 0,
        """
    setp.lt.u32 %p1, %t, 4;
    @%p1 bra done;
    elect.sync %a1|%p2, 0xfffffff0;
    selp.u32 %d, %a1, 0, %p2;
    add.u32 %d, %d, 100;
done:
""",
    ),
]
