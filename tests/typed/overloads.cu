/* gshmem/generic.h in CUDA: the same names on the host and in kernels. */
#include "gshmem/generic.h"
#include "check.h"
#include "../device/device.h"

static __global__ void work(long *x, double *d, int next)
{
    gshmem_p(x, 7L, next);
    gshmem_wait_until(x, GSHMEM_CMP_EQ, 7L);
    gshmem_put(GSHMEM_CTX_DEFAULT, x + 1, x, 1, next);
    gshmem_atomic_add(d, 0.5, next);
    gshmem_quiet();
}

int main(void)
{
    CHECK_OK(gshmem_init());
    int n = gshmem_n_pes(), next = (gshmem_my_pe() + 1) % n;
    long *x = (long *)gshmem_calloc(2, sizeof *x);
    double *d = (double *)gshmem_calloc(1, sizeof *d);
    std::complex<double> *z = (std::complex<double> *)gshmem_calloc(2, sizeof *z);

    work<<<1, 1>>>(x, d, next);
    CHECK_LAUNCH();
    gshmem_atomic_add(d, 1.0, next);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_g(x + 1, next), 7);
    CHECK(*d == 1.5);
    z[1] = std::complex<double>(1, 2);
    CHECK_OK(gshmem_sum_reduce(GSHMEM_TEAM_WORLD, z, z + 1, 1));
    CHECK(*z == std::complex<double>(n, 2 * n));
    CHECK_OK(gshmem_finalize());
    return 0;
}
