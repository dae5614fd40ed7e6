/* Integers and bits. The result of a division by 0, which PTX does not define, is all ones here, as
 * on GPUs. */
#ifndef GSHMEM_HOST_DEVICE_PTX_INTEGER_H
#define GSHMEM_HOST_DEVICE_PTX_INTEGER_H

#include "types.h"

static inline s32 ptx_sat_s32(s64 x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

static inline s32 ptx_relu_s32(s32 x)
{
    return x < 0 ? 0 : x;
}

/* --- Carry --- */

/* One flag for sums and differences: it is 1 after a difference that has borrowed nothing. */
#define PTX_CARRY(T)                                                                               \
    static inline T ptx_add_cc_##T(T a, T b, u32 carry, u32 *cc)                                   \
    {                                                                                              \
        T sum, all;                                                                                \
        u32 out = __builtin_add_overflow(a, b, &sum);                                              \
        out |= __builtin_add_overflow(sum, (T)carry, &all);                                        \
        *cc = out;                                                                                 \
        return all;                                                                                \
    }                                                                                              \
    static inline T ptx_sub_cc_##T(T a, T b, u32 carry, u32 *cc)                                   \
    {                                                                                              \
        return ptx_add_cc_##T(a, (T)~b, carry, cc);                                                \
    }
PTX_CARRY(u32)
PTX_CARRY(u64)

/* --- Products, quotients --- */

#define PTX_MUL_HI(T, Wide, bits)                                                                  \
    static inline T ptx_mul_hi_##T(T a, T b)                                                       \
    {                                                                                              \
        return (T)((Wide)a * (Wide)b >> bits);                                                     \
    }
PTX_MUL_HI(u16, u32, 16)
PTX_MUL_HI(s16, s32, 16)
PTX_MUL_HI(u32, u64, 32)
PTX_MUL_HI(s32, s64, 32)
PTX_MUL_HI(u64, u128, 64)
PTX_MUL_HI(s64, __int128, 64)

static inline u32 ptx_mul24_lo_u32(u32 a, u32 b)
{
    return (a & 0xffffff) * (b & 0xffffff);
}

static inline s32 ptx_mul24_lo_s32(s32 a, s32 b)
{
    return (s32)((s64)((s32)((u32)a << 8) >> 8) * ((s32)((u32)b << 8) >> 8));
}

static inline u32 ptx_mul24_hi_u32(u32 a, u32 b)
{
    return (u32)((u64)(a & 0xffffff) * (b & 0xffffff) >> 16);
}

static inline s32 ptx_mul24_hi_s32(s32 a, s32 b)
{
    return (s32)((s64)((s32)((u32)a << 8) >> 8) * ((s32)((u32)b << 8) >> 8) >> 16);
}

#define PTX_DIVIDE(T, U)                                                                           \
    static inline T ptx_div_##T(T a, T b)                                                          \
    {                                                                                              \
        return b == 0 ? (T)-1 : (T)-1 < 0 && b == (T)-1 ? (T)(0 - (U)a) : (T)(a / b);              \
    }                                                                                              \
    static inline T ptx_rem_##T(T a, T b)                                                          \
    {                                                                                              \
        return b == 0 ? a : (T)-1 < 0 && b == (T)-1 ? (T)0 : (T)(a % b);                           \
    }
PTX_DIVIDE(u16, u16)
PTX_DIVIDE(s16, u16)
PTX_DIVIDE(u32, u32)
PTX_DIVIDE(s32, u32)
PTX_DIVIDE(u64, u64)
PTX_DIVIDE(s64, u64)

/* --- Pairs of 16-bit integers --- */

#define PTX_PAIR(name, T, expression)                                                              \
    static inline u32 ptx_##name##_##T##x2(u32 x, u32 y)                                           \
    {                                                                                              \
        u32 result = 0;                                                                            \
        for (int i = 0; i < 32; i += 16) {                                                         \
            T a = (T)(x >> i), b = (T)(y >> i);                                                    \
            result |= (u32)(u16)(expression) << i;                                                 \
        }                                                                                          \
        return result;                                                                             \
    }
PTX_PAIR(add, u16, a + b)
PTX_PAIR(add, s16, a + b)
PTX_PAIR(min, u16, a < b ? a : b)
PTX_PAIR(min, s16, a < b ? a : b)
PTX_PAIR(max, u16, a > b ? a : b)
PTX_PAIR(max, s16, a > b ? a : b)

static inline u32 ptx_relu_s16x2(u32 x)
{
    return (x & 0x8000 ? 0 : x & 0xffff) | (x & 0x80000000u ? 0 : x & 0xffff0000u);
}

/* The difference of each byte; their sum. */
static inline u32 ptx_vabsdiff4(u32 x, u32 y)
{
    u32 result = 0;

    for (int i = 0; i < 32; i += 8) {
        const u32 a = x >> i & 0xff, b = y >> i & 0xff;
        result |= (a < b ? b - a : a - b) << i;
    }
    return result;
}

static inline u32 ptx_vsad4(u32 x, u32 y)
{
    const u32 each = ptx_vabsdiff4(x, y);

    return (each & 0xff) + (each >> 8 & 0xff) + (each >> 16 & 0xff) + (each >> 24);
}

/* --- Bits --- */

static inline u32 ptx_popc_b32(u32 x)
{
    return (u32)__builtin_popcount(x);
}

static inline u32 ptx_popc_b64(u64 x)
{
    return (u32)__builtin_popcountll(x);
}

static inline u32 ptx_clz_b32(u32 x)
{
    return x ? (u32)__builtin_clz(x) : 32;
}

static inline u32 ptx_clz_b64(u64 x)
{
    return x ? (u32)__builtin_clzll(x) : 64;
}

/* The number of the highest bit that differs from the sign; all ones if there is none. shift:
 * instead, by how much to shift this bit to the top. */
#define PTX_BFIND(T, N)                                                                            \
    static inline u32 ptx_bfind_##T(T x)                                                           \
    {                                                                                              \
        u##N bits = (T)-1 < 0 && x < 0 ? ~(u##N)x : (u##N)x;                                       \
        return bits ? N - 1 - ptx_clz_b##N(bits) : 0xffffffffu;                                    \
    }                                                                                              \
    static inline u32 ptx_bfind_shift_##T(T x)                                                     \
    {                                                                                              \
        u32 bit = ptx_bfind_##T(x);                                                                \
        return bit == 0xffffffffu ? bit : N - 1 - bit;                                             \
    }
PTX_BFIND(u32, 32)
PTX_BFIND(s32, 32)
PTX_BFIND(u64, 64)
PTX_BFIND(s64, 64)

static inline u32 ptx_brev_b32(u32 x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}

static inline u64 ptx_brev_b64(u64 x)
{
    return (u64)ptx_brev_b32((u32)x) << 32 | ptx_brev_b32((u32)(x >> 32));
}

/* The offset-th set bit from base on, upwards or downwards; all ones: there is none. */
static inline u32 ptx_fns(u32 mask, u32 base, s32 offset)
{
    const int step = offset < 0 ? -1 : 1;
    s32 left = offset < 0 ? -offset : offset;

    if (!offset)
        return base < 32 && mask >> base & 1 ? base : 0xffffffffu;
    for (int at = (int)base; at >= 0 && at < 32; at += step) {
        if (mask >> at & 1 && --left == 0)
            return (u32)at;
    }
    return 0xffffffffu;
}

/* Bits pos to pos + len - 1, extended by zeros, or by the highest of them that is in the word. */
#define PTX_BFE(T, N)                                                                              \
    static inline T ptx_bfe_##T(T a, u32 position, u32 length)                                     \
    {                                                                                              \
        const u32 pos = position & 0xff, len = length & 0xff;                                      \
        const u32 last = pos + len - 1 < N - 1 ? pos + len - 1 : N - 1;                            \
        const u##N sign = (T)-1 < 0 && len && (u##N)a >> last & 1 ? ~(u##N)0 : 0;                  \
        u##N field = pos < N ? (u##N)a >> pos : 0;                                                 \
        const u32 kept = pos < N ? (len < N - pos ? len : N - pos) : 0;                            \
        if (!len)                                                                                  \
            return 0;                                                                              \
        if (kept < N) {                                                                            \
            field &= ((u##N)1 << kept) - 1;                                                        \
            field |= sign << kept;                                                                 \
        }                                                                                          \
        return (T)field;                                                                           \
    }
PTX_BFE(u32, 32)
PTX_BFE(s32, 32)
PTX_BFE(u64, 64)
PTX_BFE(s64, 64)

#define PTX_BFI(N)                                                                                 \
    static inline u##N ptx_bfi_b##N(u##N a, u##N b, u32 position, u32 length)                      \
    {                                                                                              \
        const u32 pos = position & 0xff, len = length & 0xff;                                      \
        u##N mask = len >= N ? ~(u##N)0 : ((u##N)1 << len) - 1;                                    \
        if (pos >= N)                                                                              \
            return b;                                                                              \
        mask <<= pos;                                                                              \
        return (b & ~mask) | (a << pos & mask);                                                    \
    }
PTX_BFI(32)
PTX_BFI(64)

#define PTX_SZEXT(T)                                                                               \
    static inline T ptx_szext_clamp_##T(T a, u32 bits)                                             \
    {                                                                                              \
        return bits >= 32 ? a : bits ? (T)((T)((u32)a << (32 - bits)) >> (32 - bits)) : 0;         \
    }                                                                                              \
    static inline T ptx_szext_wrap_##T(T a, u32 bits)                                              \
    {                                                                                              \
        return ptx_szext_clamp_##T(a, bits & 31);                                                  \
    }
PTX_SZEXT(u32)
PTX_SZEXT(s32)

static inline u32 ptx_bmsk_clamp(u32 first, u32 width)
{
    const u32 bits = width >= 32 ? ~0u : (1u << width) - 1;

    return first >= 32 ? 0 : bits << first;
}

static inline u32 ptx_bmsk_wrap(u32 first, u32 width)
{
    return ptx_bmsk_clamp(first & 31, width & 31);
}

static inline u32 ptx_lop3(u32 a, u32 b, u32 c, u32 table)
{
    u32 result = 0;

    for (int i = 0; i < 8; i++) {
        if (table >> i & 1)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
}

/* --- Shifts: by the width or more, all bits become 0, or the sign --- */

#define PTX_SHIFT(N)                                                                               \
    static inline u##N ptx_shl_b##N(u##N x, u32 by)                                                \
    {                                                                                              \
        return by >= N ? 0 : (u##N)(x << by);                                                      \
    }                                                                                              \
    static inline u##N ptx_shr_u##N(u##N x, u32 by)                                                \
    {                                                                                              \
        return by >= N ? 0 : (u##N)(x >> by);                                                      \
    }                                                                                              \
    static inline s##N ptx_shr_s##N(s##N x, u32 by)                                                \
    {                                                                                              \
        return (s##N)(x >> (by >= N ? N - 1 : by));                                                \
    }
PTX_SHIFT(16)
PTX_SHIFT(32)
PTX_SHIFT(64)

static inline u32 ptx_shf_l_wrap(u32 low, u32 high, u32 by)
{
    return (u32)(((u64)high << 32 | low) << (by & 31) >> 32);
}

static inline u32 ptx_shf_r_wrap(u32 low, u32 high, u32 by)
{
    return (u32)(((u64)high << 32 | low) >> (by & 31));
}

static inline u32 ptx_shf_l_clamp(u32 low, u32 high, u32 by)
{
    return by >= 32 ? low : ptx_shf_l_wrap(low, high, by);
}

static inline u32 ptx_shf_r_clamp(u32 low, u32 high, u32 by)
{
    return by >= 32 ? high : ptx_shf_r_wrap(low, high, by);
}

/* --- Bytes --- */

static inline u32 ptx_prmt(u32 a, u32 b, u32 selectors)
{
    const u64 bytes = (u64)b << 32 | a;
    u32 result = 0;

    for (int i = 0; i < 4; i++) {
        const u32 choice = selectors >> 4 * i & 0xf;
        u32 byte = (u32)(bytes >> 8 * (choice & 7)) & 0xff;

        if (choice & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result;
}

/* The modes: the selectors that each of the numbers 0 to 3 stands for. */
#define PTX_PRMT_MODE(name, s0, s1, s2, s3)                                                        \
    static inline u32 ptx_prmt_##name(u32 a, u32 b, u32 c)                                         \
    {                                                                                              \
        static const u16 selectors[] = {s0, s1, s2, s3};                                           \
        return ptx_prmt(a, b, selectors[c & 3]);                                                   \
    }
PTX_PRMT_MODE(f4e, 0x3210, 0x4321, 0x5432, 0x6543)
PTX_PRMT_MODE(b4e, 0x5670, 0x6701, 0x7012, 0x0123)
PTX_PRMT_MODE(rc8, 0x0000, 0x1111, 0x2222, 0x3333)
PTX_PRMT_MODE(ecl, 0x3210, 0x3211, 0x3222, 0x3333)
PTX_PRMT_MODE(ecr, 0x0000, 0x1110, 0x2210, 0x3210)
PTX_PRMT_MODE(rc16, 0x1010, 0x3232, 0x1010, 0x3232)

#define PTX_DOT(A, B, C, Abyte, Bbyte, Ahalf)                                                      \
    static inline C ptx_dp4a_##A##_##B(A a, B b, C c)                                              \
    {                                                                                              \
        for (int i = 0; i < 32; i += 8)                                                            \
            c += (C)(Abyte)((u32)a >> i) * (C)(Bbyte)((u32)b >> i);                                \
        return c;                                                                                  \
    }                                                                                              \
    static inline C ptx_dp2a_##A##_##B(A a, B b, C c, int upper)                                   \
    {                                                                                              \
        for (int i = 0; i < 2; i++)                                                                \
            c += (C)(Ahalf)((u32)a >> 16 * i) * (C)(Bbyte)((u32)b >> (8 * i + 16 * upper));        \
        return c;                                                                                  \
    }
PTX_DOT(u32, u32, u32, u8, u8, u16)
PTX_DOT(u32, s32, s32, u8, s8, u16)
PTX_DOT(s32, u32, s32, s8, u8, s16)
PTX_DOT(s32, s32, s32, s8, s8, s16)
enum { ptx_dp2a_lo, ptx_dp2a_hi };

/* --- Saturated: pairs and bytes of cvt.pack, and cvt.sat between integers --- */

static inline s64 ptx_clamp(s64 x, s64 least, s64 most)
{
    return x < least ? least : x > most ? most : x;
}

static inline u32 ptx_pack_s16(s32 a, s32 b)
{
    return (u32)(u16)ptx_clamp(a, INT16_MIN, INT16_MAX) << 16 |
           (u16)ptx_clamp(b, INT16_MIN, INT16_MAX);
}

static inline u32 ptx_pack_u16(s32 a, s32 b)
{
    return (u32)ptx_clamp(a, 0, UINT16_MAX) << 16 | (u32)ptx_clamp(b, 0, UINT16_MAX);
}

static inline u32 ptx_pack_s8(s32 a, s32 b, u32 c)
{
    return c << 16 | (u32)(u8)ptx_clamp(a, INT8_MIN, INT8_MAX) << 8 |
           (u8)ptx_clamp(b, INT8_MIN, INT8_MAX);
}

static inline u32 ptx_pack_u8(s32 a, s32 b, u32 c)
{
    return c << 16 | (u32)ptx_clamp(a, 0, UINT8_MAX) << 8 | (u32)ptx_clamp(b, 0, UINT8_MAX);
}

#define PTX_SAT_INTEGER(To, From, least, most)                                                     \
    static inline To ptx_sat_##To##_of_##From(From x)                                              \
    {                                                                                              \
        const __int128 wide = x;                                                                   \
        return wide < (__int128)(least)  ? (To)(least)                                             \
               : wide > (__int128)(most) ? (To)(most)                                              \
                                         : (To)x;                                                  \
    }
#define PTX_SAT_FROM(From)                                                                         \
    PTX_SAT_INTEGER(u8, From, 0, UINT8_MAX)                                                        \
    PTX_SAT_INTEGER(u16, From, 0, UINT16_MAX)                                                      \
    PTX_SAT_INTEGER(u32, From, 0, UINT32_MAX)                                                      \
    PTX_SAT_INTEGER(u64, From, 0, UINT64_MAX)                                                      \
    PTX_SAT_INTEGER(s8, From, INT8_MIN, INT8_MAX)                                                  \
    PTX_SAT_INTEGER(s16, From, INT16_MIN, INT16_MAX)                                               \
    PTX_SAT_INTEGER(s32, From, INT32_MIN, INT32_MAX)                                               \
    PTX_SAT_INTEGER(s64, From, INT64_MIN, INT64_MAX)
PTX_SAT_FROM(u8)
PTX_SAT_FROM(u16)
PTX_SAT_FROM(u32)
PTX_SAT_FROM(u64)
PTX_SAT_FROM(s8)
PTX_SAT_FROM(s16)
PTX_SAT_FROM(s32)
PTX_SAT_FROM(s64)

#endif
