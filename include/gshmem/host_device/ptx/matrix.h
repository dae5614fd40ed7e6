/* What a warp does with matrices that its lanes hold parts of. */
#ifndef GSHMEM_HOST_DEVICE_PTX_MATRIX_H
#define GSHMEM_HOST_DEVICE_PTX_MATRIX_H

#include "types.h"

/* What the elements of a matrix are, in registers of 32 bits. */
enum ptx_number {
    PTX_NUMBER_F16,
    PTX_NUMBER_BF16,
    PTX_NUMBER_TF32,
    PTX_NUMBER_E4M3,
    PTX_NUMBER_E5M2,
    PTX_NUMBER_S8,
    PTX_NUMBER_U8,
    PTX_NUMBER_F32,
    PTX_NUMBER_S32,
};

struct ptx_product {
    enum ptx_number a, b, c; /* c: of the sum, too */
    int k;                   /* columns of a */
    int satfinite;           /* of s32: the nearest number that can be represented */
};

#pragma GCC visibility push(default)
/* mma m16n8: c += a * b. The lane's registers: k / (4 * elements in one) of b, twice as many of a,
 * and four of c, or two of f16. */
void gshmem_host_ptx_product(struct ptx_product product, const u32 *a, const u32 *b, u32 *c,
                             const char *file, int line);
/* ldmatrix and stmatrix m8n8: `row` is the lane's row of 16 bytes, of matrix lane / 8; to or from a
 * register for each matrix. */
void gshmem_host_ptx_matrix_load(const char *row, int matrices, int transposed, u32 *registers,
                                 const char *file, int line);
void gshmem_host_ptx_matrix_store(char *row, int matrices, int transposed, const u32 *registers,
                                  const char *file, int line);
/* movmatrix: the register of the lane, of the transposed matrix. */
u32 gshmem_host_ptx_matrix_transpose(u32 part, const char *file, int line);
#pragma GCC visibility pop

#endif
