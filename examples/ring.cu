/* How does a kernel hand data to another PE and tell it that it is there? A token goes round all
 * PEs: data and signal travel together, and who sees the signal sees the data. The kernels of all
 * PEs run at the same time.
 *
 * What is put lies in symmetric memory, where a proxy or a NIC can read it: not on a thread's
 * stack. */
#include <gshmem.h>
#include <stdio.h>

enum { LAPS = 100 };

__global__ void ring(long *token, uint64_t *lap_seen)
{
    int me = gshmem_my_pe(), right = (me + 1) % gshmem_n_pes();

    for (uint64_t lap = 1; lap <= LAPS; lap++) {
        if (me != 0)
            gshmem_signal_wait_until(lap_seen, GSHMEM_CMP_GE, lap);
        ++*token;
        gshmem_long_put_signal(token, token, 1, lap_seen, lap, GSHMEM_SIGNAL_SET, right);
        if (me == 0) /* set it off, and sees it again after a whole lap */
            gshmem_signal_wait_until(lap_seen, GSHMEM_CMP_GE, lap);
    }
}

int main()
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();

    /* Symmetric memory is where kernels run: on a GPU the host copies out of it. */
    long *token = (long *)gshmem_calloc(1, sizeof *token), last = 0;
    uint64_t *lap_seen = (uint64_t *)gshmem_calloc(1, sizeof *lap_seen);
    if (!token || !lap_seen)
        return 1;

    ring<<<1, 1>>>(token, lap_seen);
    cudaError_t error = cudaMemcpy(&last, token, sizeof last, cudaMemcpyDefault);
    int failed = error != cudaSuccess || (me == 0 && last != (long)LAPS * n);
    if (me == 0)
        printf("ring: after %d laps of %d PEs the token is %ld: %s\n", LAPS, n, last,
               failed ? "wrong" : "right");
    gshmem_raise(gshmem_free(lap_seen));
    gshmem_raise(gshmem_free(token));
    return gshmem_finalize() || failed;
}
