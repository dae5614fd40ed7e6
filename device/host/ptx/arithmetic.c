/* Arithmetic in the rounding modes that C has no operators for. The processor's mode is changed
 * here, where the watch (blocks/watch.c) interrupts nobody: other fibers never see it. */
#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/host_device/ptx/half.h"
#include "gshmem/host_device/ptx/real.h"

static int begin_rounding(int rounding)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    const int before = fegetround();

    fesetround(modes[rounding]);
    return before;
}

/* Volatile: so that the compiler neither computes it before, nor moves it. */
#define ROUNDED(T, suffix)                                                                         \
    __attribute__((visibility("default")))                                                         \
    T gshmem_host_ptx_##T(int operation, int rounding, T a_, T b_, T c_)                           \
    {                                                                                              \
        volatile T a = a_, b = b_, c = c_, result = 0;                                             \
        const int before = begin_rounding(rounding);                                               \
                                                                                                   \
        switch (operation) {                                                                       \
        case PTX_OP_ADD:                                                                           \
            result = a + b;                                                                        \
            break;                                                                                 \
        case PTX_OP_SUB:                                                                           \
            result = a - b;                                                                        \
            break;                                                                                 \
        case PTX_OP_MUL:                                                                           \
            result = a * b;                                                                        \
            break;                                                                                 \
        case PTX_OP_DIV:                                                                           \
            result = a / b;                                                                        \
            break;                                                                                 \
        case PTX_OP_FMA:                                                                           \
            result = fma##suffix(a, b, c);                                                         \
            break;                                                                                 \
        default:                                                                                   \
            result = sqrt##suffix(a);                                                              \
        }                                                                                          \
        fesetround(before);                                                                        \
        return result;                                                                             \
    }
ROUNDED(f32, f)
ROUNDED(f64, )

#pragma GCC visibility push(default)
f32 gshmem_host_ptx_f32_of_integer(int rounding, int is_signed, u64 x);
f64 gshmem_host_ptx_f64_of_integer(int rounding, int is_signed, u64 x);
f32 gshmem_host_ptx_f32_of_f64(int rounding, f64 x);
#pragma GCC visibility pop

/* Of an integer's size, exactly, as two f64 that one addition rounds. */
#define OF_INTEGER(T)                                                                              \
    T gshmem_host_ptx_##T##_of_integer(int rounding, int is_signed, u64 x)                         \
    {                                                                                              \
        volatile long double exact = is_signed ? (long double)(s64)x : (long double)x;             \
        const int before = begin_rounding(rounding);                                               \
        volatile T result = (T)exact;                                                              \
                                                                                                   \
        fesetround(before);                                                                        \
        return result;                                                                             \
    }
OF_INTEGER(f32)
OF_INTEGER(f64)
_Static_assert(sizeof(long double) > 8, "a long double holds all integers of 64 bits");

f32 gshmem_host_ptx_f32_of_f64(int rounding, f64 x_)
{
    volatile f64 x = x_;
    const int before = begin_rounding(rounding);
    volatile f32 result = (f32)x;

    fesetround(before);
    return result;
}

/* What is above a quantum's multiple decides; a value above the largest is infinite or the largest,
 * by the mode. */
u16 gshmem_host_ptx_small_of_f64(f64 x, int fraction, int exponent_min, u32 infinity, int rounding)
{
    const u16 sign = signbit(x) ? 0x8000 : 0;
    int exponent;

    if (x != x)
        return 0x7fff;
    if (isinf(x))
        return (u16)(sign | infinity);
    if (x == 0)
        return sign;
    const f64 size = fabs(x);
    frexp(size, &exponent);
    exponent = exponent - 1 < exponent_min ? exponent_min : exponent - 1;
    const f64 quanta = ldexp(size, fraction - exponent), whole = floor(quanta);
    const f64 rest = quanta - whole;
    u64 n = whole > 0x1p40 ? UINT64_C(1) << 40 : (u64)whole;
    const int away = (rounding == PTX_RM && sign) || (rounding == PTX_RP && !sign);
    if (rounding == PTX_RN ? rest > 0.5 || (rest == 0.5 && n & 1) : away && rest > 0)
        n++;
    const u64 bits = ((u64)(exponent - exponent_min) << fraction) + n;
    if (bits >= infinity)
        return (u16)(sign | (rounding == PTX_RN || away ? infinity : infinity - 1));
    return (u16)(sign | bits);
}
