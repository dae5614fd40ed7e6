/* Matrices that the lanes of a warp hold parts of: products, loads and stores. Lanes meet at a
 * table of the first lane, and each writes its part there and reads what it needs.
 *
 * Sums of products are exact to 53 bits and rounded once; GPUs do not say how they round. */
#include <stddef.h>

#include "gshmem/host_device/ptx/matrix.h"

#include "gshmem/host_device/ptx/bytes.h"
#include "gshmem/host_device/ptx/memory.h"
#include "gshmem/host_device/ptx/module.h"

#define LANES 32

struct parts {
    u32 a[LANES][4], b[LANES][2];
    char *row[LANES];
};

/* The table of the first lane. All 32 come here, or the launch fails. */
static struct parts *begin(struct parts *own, const char *file, int line)
{
    if (gshmem_host_warp(GSHMEM_HOST_WARP_BALLOT, ~0u, 1, 0, file, line) != ~0u)
        gshmem_host_trap("a matrix of a warp that has not 32 threads", file, line);
    return (struct parts *)(uintptr_t)gshmem_host_warp(GSHMEM_HOST_WARP_SHUFFLE, ~0u,
                                                       (u64)(uintptr_t)own, 0, file, line);
}

/* Behind it, what lanes have written is there, or nobody reads it any longer. */
static void meet(const char *file, int line)
{
    (void)gshmem_host_warp(GSHMEM_HOST_WARP_SYNC, ~0u, 0, 0, file, line);
}

/* --- Products --- */

static int bits_of(enum ptx_number element)
{
    switch (element) {
    case PTX_NUMBER_F16:
    case PTX_NUMBER_BF16:
        return 16;
    case PTX_NUMBER_TF32:
    case PTX_NUMBER_F32:
    case PTX_NUMBER_S32:
        return 32;
    default:
        return 8;
    }
}

/* The number that is element `i` of a register. */
static f64 number(enum ptx_number element, u32 bits, int i)
{
    const u32 one = bits >> i * bits_of(element);

    switch (element) {
    case PTX_NUMBER_F16:
        return ptx_f32_of_f16((u16)one);
    case PTX_NUMBER_BF16:
        return ptx_f32_of_bf16((u16)one);
    case PTX_NUMBER_TF32:
        return ptx_f32(one & ~0x1fffu);
    case PTX_NUMBER_E4M3:
        return ptx_f32_of_f16(ptx_f16_of_e4m3(one & 0xff));
    case PTX_NUMBER_E5M2:
        return ptx_f32_of_f16(ptx_f16_of_e5m2(one & 0xff));
    case PTX_NUMBER_S8:
        return (s8)one;
    case PTX_NUMBER_U8:
        return (u8)one;
    case PTX_NUMBER_F32:
        return ptx_f32(one);
    default:
        return (s32)one;
    }
}

/* Rows of a, and columns of b, belong to four lanes: lane / 4 is the row, or the column; registers
 * of a alternate between rows 8 apart. */
static f64 matrix_sum(const struct ptx_product *product, const struct parts *parts, int row,
                      int column)
{
    const int in_one = 32 / bits_of(product->a);
    f64 sum = 0;

    for (int k = 0; k < product->k; k++) {
        const int part = k / (4 * in_one), lane = k / in_one % 4, i = k % in_one;
        sum += number(product->a, parts->a[row % 8 * 4 + lane][2 * part + row / 8], i) *
               number(product->b, parts->b[column * 4 + lane][part], i);
    }
    return sum;
}

/* Integers: at most 32 products of 16 bits, so that the sum is exact. */
static u32 integer_of(f64 sum, int satfinite)
{
    if (satfinite)
        return (u32)(s32)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
    return (u32)(s64)sum;
}

void gshmem_host_ptx_product(struct ptx_product product, const u32 *a, const u32 *b, u32 *c,
                             const char *file, int line)
{
    struct parts own, *const parts = begin(&own, file, line);
    const int lane = (int)gshmem_host_lane(), count = product.k / (4 * (32 / bits_of(product.a)));

    memcpy(parts->a[lane], a, 2 * (size_t)count * sizeof *a);
    memcpy(parts->b[lane], b, (size_t)count * sizeof *b);
    meet(file, line);
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        const f64 sum = matrix_sum(&product, parts, row, column);
        if (product.c == PTX_NUMBER_F16) {
            const f64 all = ptx_odd_sum(sum, number(product.c, c[i / 2], i % 2));
            const u32 half = ptx_f16_of_f64_rn(all), at = (u32)i % 2 * 16;
            c[i / 2] = (c[i / 2] & ~(0xffffu << at)) | half << at;
        } else if (product.c == PTX_NUMBER_F32) {
            c[i] = ptx_bits_f32((f32)ptx_odd_sum(sum, number(product.c, c[i], 0)));
        } else {
            c[i] = integer_of(sum + number(product.c, c[i], 0), product.satfinite);
        }
    }
    meet(file, line);
}

/* --- Matrices of 8 rows of 8 elements of 16 bits --- */

/* Where element `i` of the lane's register for matrix `matrix` is. */
static char *place(const struct parts *parts, int matrix, int transposed, int i)
{
    const int lane = (int)gshmem_host_lane(), along = lane % 4 * 2 + i;
    const int row = transposed ? along : lane / 4, column = transposed ? lane / 4 : along;

    return parts->row[matrix * 8 + row] + column * 2;
}

void gshmem_host_ptx_matrix_load(const char *row, int matrices, int transposed, u32 *registers,
                                 const char *file, int line)
{
    struct parts own, *const parts = begin(&own, file, line);

    parts->row[gshmem_host_lane()] = (char *)(uintptr_t)row;
    meet(file, line);
    for (int m = 0; m < matrices; m++)
        registers[m] = ptx_ld_16(place(parts, m, transposed, 0)) |
                       (u32)ptx_ld_16(place(parts, m, transposed, 1)) << 16;
    meet(file, line);
}

void gshmem_host_ptx_matrix_store(char *row, int matrices, int transposed, const u32 *registers,
                                  const char *file, int line)
{
    struct parts own, *const parts = begin(&own, file, line);

    parts->row[gshmem_host_lane()] = row;
    meet(file, line);
    for (int m = 0; m < matrices; m++) {
        ptx_st_16(place(parts, m, transposed, 0), (u16)registers[m]);
        ptx_st_16(place(parts, m, transposed, 1), (u16)(registers[m] >> 16));
    }
    meet(file, line);
}

u32 gshmem_host_ptx_matrix_transpose(u32 part, const char *file, int line)
{
    struct parts own, *const parts = begin(&own, file, line);
    const int lane = (int)gshmem_host_lane();
    u32 result = 0;

    parts->a[lane][0] = part;
    meet(file, line);
    for (int i = 0; i < 2; i++) { /* element (2 * (lane % 4) + i, lane / 4) */
        const u32 pair = parts->a[(lane % 4 * 2 + i) * 4 + lane / 8][0];
        result |= (pair >> lane / 4 % 2 * 16 & 0xffff) << i * 16;
    }
    meet(file, line);
    return result;
}
