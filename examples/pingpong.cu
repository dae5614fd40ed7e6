/* How long does it take a kernel to reach another PE's kernel, and to hear from it? PEs play in
 * pairs; a ball is 8 bytes, put with its signal. */
#include <gshmem.h>
#include <stdio.h>

enum { TURNS = 2000 };

struct court {
    uint64_t arrived;    /* turns that the partner has played */
    long thrown, caught; /* the ball */
};

__global__ void pingpong(struct court *court, int partner, int *wrong)
{
    bool begins = gshmem_my_pe() <= partner;

    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        court->thrown = (long)turn * 7;
        if (begins)
            gshmem_long_put_signal(&court->caught, &court->thrown, 1, &court->arrived, turn,
                                   GSHMEM_SIGNAL_SET, partner);
        gshmem_signal_wait_until(&court->arrived, GSHMEM_CMP_GE, turn);
        *wrong += court->caught != (long)turn * 7;
        if (!begins)
            gshmem_long_put_signal(&court->caught, &court->thrown, 1, &court->arrived, turn,
                                   GSHMEM_SIGNAL_SET, partner);
    }
}

int main()
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes(), partner = me ^ 1;
    if (partner >= n)
        partner = me; /* nobody left: against the wall */

    struct court *court = (struct court *)gshmem_calloc(1, sizeof *court);
    int *wrong = (int *)gshmem_calloc(1, sizeof *wrong), mine = 0;
    cudaEvent_t begin, end;
    float ms = 0;
    if (!court || !wrong || cudaEventCreate(&begin) || cudaEventCreate(&end))
        return 1;

    gshmem_barrier_all(); /* so that nobody's clock runs while others still start */
    cudaEventRecord(begin);
    pingpong<<<1, 1>>>(court, partner, wrong);
    cudaEventRecord(end);
    cudaError_t error = cudaMemcpy(&mine, wrong, sizeof mine, cudaMemcpyDefault);
    cudaEventElapsedTime(&ms, begin, end);

    int failed = error != cudaSuccess || mine != 0;
    if (me == 0)
        printf("pingpong: %d turns of 8 bytes on %d PEs, %.2f us each way: %s\n", TURNS, n,
               1e3 * ms / TURNS / 2, failed ? "wrong" : "right");
    cudaEventDestroy(end);
    cudaEventDestroy(begin);
    gshmem_raise(gshmem_free(wrong));
    gshmem_raise(gshmem_free(court));
    return gshmem_finalize() || failed;
}
