/* C++'s own complex numbers, by every name that takes complex numbers. <complex> comes after shmem.h, which
 * must do without. */
#include <shmem.h>
#include <shmemx.h>

#include <complex>

#include "check.h"

static int me, n_pes;
static long sync_words[2][SHMEM_REDUCE_SYNC_SIZE];

/* All PEs bring (pe + 1)·(1 + i): sums are exact, and the products of so few PEs, too. */
template <class Real> struct Numbers {
    static std::complex<Real> source[2], dest[2], work[2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

    static void check(int status, std::complex<Real> expected)
    {
        CHECK_ZERO(status);
        CHECK(dest[0] == expected && dest[1] == -expected);
        dest[0] = dest[1] = 0;
        shmem_barrier_all();
    }

    static std::complex<Real> sum(int n)
    {
        return std::complex<Real>(1, 1) * static_cast<Real>(n * (n + 1) / 2);
    }

    static void bring()
    {
        source[0] = std::complex<Real>(1, 1) * static_cast<Real>(me + 1);
        source[1] = -source[0];
        shmem_barrier_all();
    }
};
template <class Real> std::complex<Real> Numbers<Real>::source[2];
template <class Real> std::complex<Real> Numbers<Real>::dest[2];
template <class Real> std::complex<Real> Numbers<Real>::work[2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

#define TRY(Real, letter)                                                                          \
    do {                                                                                           \
        typedef Numbers<Real> N;                                                                   \
        std::complex<Real> product(1, 0);                                                          \
        for (int pe = 0; pe < n_pes; pe++)                                                         \
            product *= std::complex<Real>(1, 1) * static_cast<Real>(pe + 1);                       \
        N::bring();                                                                                \
        N::check(shmem_sum_reduce(SHMEM_TEAM_WORLD, N::dest, N::source, 2), N::sum(n_pes));        \
        N::check(shmem_complex##letter##_sum_reduce(SHMEM_TEAM_WORLD, N::dest, N::source, 2),      \
                 N::sum(n_pes));                                                                   \
        N::check(shmem_sum_inscan(SHMEM_TEAM_WORLD, N::dest, N::source, 2), N::sum(me + 1));       \
        N::check(shmem_complex##letter##_sum_inscan(SHMEM_TEAM_WORLD, N::dest, N::source, 2),      \
                 N::sum(me + 1));                                                                  \
        N::check(shmemx_sum_exscan(SHMEM_TEAM_WORLD, N::dest, N::source, 2), N::sum(me));          \
        N::check(shmem_complex##letter##_sum_exscan(SHMEM_TEAM_WORLD, N::dest, N::source, 2),      \
                 N::sum(me));                                                                      \
        shmem_complex##letter##_sum_to_all(N::dest, N::source, 2, 0, 0, n_pes, N::work,            \
                                           sync_words[0]);                                         \
        N::check(0, N::sum(n_pes));                                                                \
        CHECK_ZERO(shmem_prod_reduce(SHMEM_TEAM_WORLD, N::dest, N::source, 1));                    \
        CHECK(N::dest[0] == product);                                                              \
        shmem_complex##letter##_prod_to_all(N::dest, N::source, 1, 0, 0, n_pes, N::work,           \
                                            sync_words[1]);                                        \
        CHECK(N::dest[0] == product);                                                              \
        CHECK_ZERO(shmem_complex##letter##_prod_reduce(SHMEM_TEAM_WORLD, N::dest, N::source, 1));  \
        CHECK(N::dest[0] == product);                                                              \
        shmem_barrier_all();                                                                       \
    } while (0)

int main()
{
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    TRY(float, f);
    TRY(double, d);
    shmem_finalize();
    return 0;
}
