/* NVSHMEM's host functions in C, of a program without kernels. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include "../check.h"

int main(void)
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes(), right = (mype + 1) % npes;
    long *longs = nvshmem_calloc(8, sizeof *longs);
    uint64_t *signal = nvshmem_calloc(1, sizeof *signal);
    CHECK(longs && signal);

    nvshmem_long_p(longs, mype + 1, right);
    nvshmem_barrier_all();
    CHECK_EQ(longs[0], (mype + npes - 1) % npes + 1);
    CHECK_EQ(nvshmem_long_g(longs, right), mype + 1);
    CHECK_EQ(nvshmem_long_sum_reduce(NVSHMEM_TEAM_WORLD, longs + 1, longs, 1), 0);
    CHECK_EQ(longs[1], (long)npes * (npes + 1) / 2);
    nvshmem_long_put_signal(longs + 2, longs + 1, 1, signal, 5, NVSHMEM_SIGNAL_SET, right);
    CHECK_EQ(nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 5), 5);
    CHECK_EQ(longs[2], longs[1]);
    nvshmem_barrier_all();

    /* Streams are there without kernels, too: the default one. */
    nvshmemx_signal_op_on_stream(signal, 1, NVSHMEM_SIGNAL_ADD, right, NULL);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 6, NULL);
    nvshmemx_long_p_on_stream(longs + 3, 7, right, NULL);
    nvshmemx_barrier_all_on_stream(NULL);
    CHECK_EQ(longs[3], 7);
    nvshmem_free(signal);
    nvshmem_free(longs);
    nvshmem_finalize();
    return 0;
}
