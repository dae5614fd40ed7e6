"""Names of registers, parameters and functions, as inline PTX may choose them: those that the
translation has for itself, and words of C."""

from kernel import Kernel

KERNELS = [
    Kernel(
        "names_vector_load",
        lambda t: 5 + 70 + 900,
        """
    .reg .b32 v0, v1, v2;
    mov.u32 v0, 5;
    mov.u32 v1, 7;
    st.shared.v2.u32 [names_words], {v0, v1};
    mov.u32 v0, 9;
    st.shared.v2.u32 [names_words+8], {v1, v0};
    ld.shared.v2.u32 {v1, v0}, [names_words];
    mad.lo.u32 %d, v0, 10, v1;
    ld.shared.v2.u32 {v0, v2}, [names_words+8];
    mad.lo.u32 %d, v2, 100, %d;
""",
        outside=".shared .align 8 .b8 names_words[16];\n",
    ),
    Kernel(
        "names_address",
        lambda t: 3,
        """
    .reg .b64 at, shared;
    .reg .b32 cc;
    mov.u32 cc, 3;
    mov.u64 at, %at;
    st.global.u32 [at], cc;
    mov.u64 shared, at;
    ld.global.u32 %d, [shared];
""",
    ),
    Kernel(
        "names_carry",
        lambda t: 1,
        """
    .reg .b32 cc, shared;
    mov.u32 cc, 0xffffffff;
    add.cc.u32 shared, cc, cc;
    addc.u32 %d, 0, 0;
""",
    ),
    Kernel(
        "names_compare",
        lambda t: int(t < 16 and t > 3) * 2 + int(not t < 16 and t > 3),
        """
    .reg .pred is, with, all;
    setp.gt.u32 is, %t, 3;
    setp.lt.and.u32 with|all, %t, 16, is;
    selp.u32 %a1, 2, 0, with;
    selp.u32 %a2, 1, 0, all;
    add.u32 %d, %a1, %a2;
""",
    ),
    Kernel(
        "names_shuffle",
        lambda t: 100 + (t ^ 1) + 1000,
        """
    .reg .b32 source, wanted, v0;
    .reg .pred inside;
    add.u32 source, %t, 100;
    mov.u32 v0, 1;
    shfl.sync.bfly.b32 wanted|inside, source, v0, 31, -1;
    selp.u32 source, 1000, 0, inside;
    add.u32 %d, wanted, source;
""",
    ),
    Kernel(
        "names_vote",
        lambda t: 1,
        """
    .reg .pred some, all, same;
    setp.lt.u32 some, %t, 64;
    setp.lt.u32 all, %t, 8;
    vote.sync.uni.pred same, some, -1;
    vote.sync.uni.pred some, all, -1;
    selp.u32 %a1, 1, 0, same;
    selp.u32 %a2, 2, 0, some;
    add.u32 %d, %a1, %a2;
""",
    ),
    Kernel(
        "names_match_elect",
        lambda t: 0xFFFFFFF0 if t == 4 else 16,
        """
    .reg .b32 mask, leader, same;
    .reg .pred is;
    mov.u32 same, 7;
    mov.u32 mask, -16;
    setp.lt.u32 is, %t, 4;
    @is bra names_done;
    match.all.sync.b32 same|is, same, mask;
    elect.sync leader|is, same;
    selp.u32 %d, -16, 16, is;
names_done:
    setp.lt.u32 is, %t, 4;
    @is mov.u32 %d, 16;
""",
    ),
    Kernel(
        "names_parts",
        lambda t: 0x3456_0012,
        """
    .reg .b32 all;
    .reg .b16 v0, v1;
    mov.b32 all, 0x00123456;
    mov.b32 {v0, v1}, all;
    mov.b32 all, {v1, v0};
    mov.b32 %d, all;
""",
    ),
    Kernel(
        "names_of_c",
        lambda t: sum(range(1, 13)),
        """
    .reg .b32 int, for, const, if, u32, char, goto, main, memcpy, NULL, __LINE__, gridDim;
"""
        + "\n".join(
            f"    mov.u32 {name}, {i + 1};\n    add.u32 %d, %d, {name};"
            for i, name in enumerate(
                "int for const if u32 char goto main memcpy NULL __LINE__ gridDim".split()
            )
        ),
    ),
    Kernel(
        "names_alike",
        lambda t: 1234,
        """
    .reg .b32 %q, r_q, $q, S_q, _q, __q, q$, q_, _pq;
    mov.u32 %q, 1000;
    {
        .reg .b32 r_q, S_q, _pq;
        mov.u32 r_q, 5;
        mov.u32 _pq, 6;
        add.u32 S_q, %q, 200;
        mov.u32 $q, S_q;
    }
    add.u32 $q, $q, 34;
    mov.u32 %d, $q;
""",
    ),
    Kernel(
        "names_call",
        lambda t: t * 3 + 1,
        """
    {
        .param .b32 module;
        .param .b32 kernels;
        st.param.b32 [module], %t;
        call.uni (kernels), names_triple, (module);
        ld.param.b32 %d, [kernels];
    }
""",
        outside="""
.func (.param .b32 u8) names_triple(.param .b32 void)
{
    .reg .b32 v_0, %r<3>;
    ld.param.u32 v_0, [void];
    mad.lo.u32 %r1, v_0, 3, 1;
    st.param.b32 [u8], %r1;
    ret;
}
""",
    ),
]
