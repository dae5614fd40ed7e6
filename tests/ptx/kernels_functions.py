"""Functions by their address, and addresses as initial values of variables."""

from kernel import Kernel

TABLE = """
.shared .b32 functions_own;
.shared .b32 functions_first;
.shared .b32 functions_second;
.global .align 8 .u64 functions_table[2] = {functions_keep, functions_sum};
.func (.param .b32 result) functions_keep(.param .b32 value)
{
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [value];
    st.shared.u32 [functions_first], %r1;
    st.shared.u32 [functions_second], 1000;
    st.param.b32 [result], %r1;
    ret;
}
.func (.param .b32 result) functions_sum(.param .b32 value)
{
    .reg .b32 %r<4>;
    ld.shared.u32 %r1, [functions_first];
    ld.shared.u32 %r2, [functions_second];
    add.u32 %r3, %r1, %r2;
    ld.param.u32 %r1, [value];
    add.u32 %r3, %r3, %r1;
    st.param.b32 [result], %r3;
    ret;
}
"""


def call(register, value, name):
    return f"""
    {{
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], {value};
        {name}: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (answer), {register}, (argument), {name};
        ld.param.b32 %d, [answer];
    }}
"""


KERNELS = [
    Kernel(
        "functions_in_a_table",
        lambda t: 5000000 + 30 + 1000 + 4,
        """
    .reg .b64 f;
    mov.u32 %a1, 5000000;
    st.shared.u32 [functions_own], %a1;
    ld.global.u64 f, [functions_table];
"""
        + call("f", 30, "first")
        + """
    ld.global.u64 f, [functions_table+8];
"""
        + call("f", 4, "second")
        + """
    ld.shared.u32 %a1, [functions_own];
    add.u32 %d, %d, %a1;
""",
        threads=1,
        outside=TABLE,
    ),
    Kernel(
        "functions_address_taken",
        lambda t: 33,
        """
    mov.u64 %l1, functions_identity;
"""
        + call("%l1", 33, "identity"),
        outside="""
.func (.param .b32 result) functions_identity(.param .b32 value)
{
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [value];
    st.param.b32 [result], %r1;
    ret;
}
""",
    ),
    Kernel(
        "addresses_as_values",
        lambda t: 2 + 30 + 400,
        """
    ld.global.u64 %l1, [addresses];
    ld.u32 %d, [%l1];
    ld.global.u64 %l1, [addresses+8];
    ld.u32 %a1, [%l1];
    add.u32 %d, %d, %a1;
    ld.global.u64 %l1, [addresses+16];
    ld.global.u32 %a1, [%l1+4];
    add.u32 %d, %d, %a1;
""",
        outside="""
.global .u32 address_words[5] = {1, 2, 30, 7-8+401, 5000};
.global .u64 addresses[3] = {generic(address_words)+4, generic(address_words+12)-4,
                             address_words+8};
""",
    ),
    Kernel(  # each way, and one that two numbers have
        "branch_table",
        lambda t: [10, 20, 20, 40][t % 4],
        """
    and.b32 %a1, %t, 3;
    table_ways: .branchtargets table_0, table_1, table_1, table_3;
    brx.idx %a1, table_ways;
table_3:
    mov.u32 %d, 40;
    bra.uni table_over;
table_1:
    mov.u32 %d, 20;
    bra.uni table_over;
table_0:
    mov.u32 %d, 10;
table_over:
""",
    ),
    Kernel(
        "branch_table_beyond",
        None,
        """
    add.u32 %a1, %t, 2;
    short_ways: .branchtargets short_0, short_1;
    brx.idx %a1, short_ways;
short_0:
short_1:
""",
        1,
    ),
    Kernel(
        "rows_of_values",
        lambda t: 0x0F020305 if t < 32 else None,
        """
    ld.global.u32 %d, [value_rows];
""",
        outside=".global .align 4 .b8 value_rows[2][2] = {{5, 3}, {2, 0xf}};\n",
    ),
]
