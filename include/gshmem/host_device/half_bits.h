/* The bits of half (IEEE's binary16) and bfloat16 (the upper half of a float) from and to float,
 * rounded to nearest, ties to even; for the library's reductions and the host device's types. */
#ifndef GSHMEM_HOST_DEVICE_HALF_BITS_H
#define GSHMEM_HOST_DEVICE_HALF_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t gshmem_single_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float gshmem_single_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float gshmem_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;

    if (rest >= 0x7c00u << 13) /* infinite or not a number */
        return gshmem_single_of(sign | 0x7f800000 | rest);
    /* The exponent's bias is 112 less than float's. The product corrects that, for subnormal
     * numbers too. */
    return gshmem_single_of(sign | gshmem_single_bits(gshmem_single_of(rest) * 0x1p112f));
}

static inline uint16_t gshmem_half_of_float(float value)
{
    const uint32_t bits = gshmem_single_bits(value), sign = bits >> 16 & 0x8000;
    uint32_t rest = bits & 0x7fffffff;

    if (rest > 0x7f800000)
        return 0x7fff; /* not a number, as CUDA has it */
    if (rest < 0x38800000) /* below 2^-14: the sum rounds to a multiple of 2^-24 */
        return (uint16_t)(sign | (gshmem_single_bits(gshmem_single_of(rest) + 0.5f) - 0x3f000000));
    rest = (rest + 0xfff + (rest >> 13 & 1) - (112u << 23)) >> 13;
    return (uint16_t)(sign | (rest < 0x7c00 ? rest : 0x7c00));
}

static inline float gshmem_bfloat16_to_float(uint16_t bfloat16)
{
    return gshmem_single_of((uint32_t)bfloat16 << 16);
}

static inline uint16_t gshmem_bfloat16_of_float(float value)
{
    const uint32_t bits = gshmem_single_bits(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
