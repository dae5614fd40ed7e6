/* The same of kernels, on the host device: races-kernels racy|mended LATE, on 2 PEs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gshmem_device.h>

#include "check.h"

enum { N = 64 };

struct shared {
    long data[N], source[N], counter;
    uint64_t ready;
};

static int me;
static bool mended;

__global__ void single_then_load(struct shared *s, bool mended, int me, long *out)
{
    if (me == 0 && gshmem_long_p(&s->data[4], 1L, 1)) /* single_then_load: 1 */
        out[1] = 1;
    if (mended && gshmem_barrier_all())
        out[1] = 1;
    if (me == 1)
        out[0] = s->data[4]; /* single_then_load: 2 */
}

__global__ void block_put(struct shared *s, bool mended, int me, long *out)
{
    if (me == 0) {
        if (gshmem_putmem_signal_block(s->data, s->source, sizeof s->data, /* block_put: 1 */
                                       &s->ready, 1, GSHMEM_SIGNAL_SET, 1))
            out[1] = 1;
        return;
    }
    if (mended && threadIdx.x == 0)
        gshmem_signal_wait_until(&s->ready, GSHMEM_CMP_EQ, 1);
    __syncthreads();
    out[2 + threadIdx.x] = s->data[threadIdx.x]; /* block_put: 2 */
}

__global__ void no_fence(struct shared *s, bool mended, int me, long *out)
{
    if (me == 0) {
        if (gshmem_putmem_nbi(s->data, s->source, sizeof s->data, 1)) /* no_fence: 1 */
            out[1] = 1;
        if (mended && gshmem_fence())
            out[1] = 1;
        if (gshmem_signal_op(&s->ready, 1, GSHMEM_SIGNAL_SET, 1))
            out[1] = 1;
        return;
    }
    gshmem_signal_wait_until(&s->ready, GSHMEM_CMP_EQ, 1);
    out[0] = s->data[1]; /* no_fence: 2 */
}

__global__ void source_reused(struct shared *s, bool mended, int me, long *out)
{
    if (me != 0)
        return;
    if (gshmem_putmem_nbi(s->data, s->source, sizeof s->data, 1)) /* source_reused: 1 */
        out[1] = 1;
    if (mended && gshmem_quiet())
        out[1] = 1;
    s->source[3] = 4; /* source_reused: 2 */
}

__global__ void added_and_stored(struct shared *s, bool mended, int me, long *out)
{
    if (me == 0 && gshmem_long_atomic_add(&s->counter, 1L, 1)) /* added_and_stored: 1 */
        out[1] = 1;
    if (me == 1 && mended && gshmem_long_atomic_add(&s->counter, 2L, 1))
        out[1] = 1;
    if (me == 1 && !mended)
        s->counter = 2; /* added_and_stored: 2 */
}

__global__ void put_by_kernel(struct shared *s, int me, long *out)
{
    if (me == 0 && gshmem_putmem(s->data, s->source, sizeof s->data, 1)) /* read_by_host: 1 */
        out[1] = 1;
}

static long read_by_host(struct shared *s, long *out)
{
    put_by_kernel<<<1, 1>>>(s, me, out);
    CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (mended)
        CHECK_OK(gshmem_barrier_all());
    return me == 1 ? s->data[0] : 0; /* read_by_host: 2 */
}

__global__ void indexed_puts(struct shared *s, bool mended, int me, long *out)
{
    const size_t index[2] = {1, 3};

    if (me == 0 && gshmem_long_ixput(s->data, s->source, index, 2, 1)) /* indexed_puts: 1 */
        out[1] = 1;
    if (mended && gshmem_barrier_all())
        out[1] = 1;
    if (me == 1)
        out[0] = s->data[3]; /* indexed_puts: 2 */
}

/* ---- What is ordered, and was taken for a race: only mended ---- */

__global__ void after_refusal(struct shared *s, int me, long *out)
{
    out[2] = gshmem_long_broadcast(GSHMEM_TEAM_WORLD, s->data, s->source, 1, me == 0 ? 99 : 0);
    if (me == 1 && gshmem_long_p(&s->data[4], 1L, 0))
        out[1] = 1;
    if (gshmem_barrier_all())
        out[1] = 1;
    if (me == 0)
        out[0] = s->data[4];
}

/* PE 1 waits by volatile loads, which are not followed and so order nothing. */
__global__ void fetched_later(struct shared *s, int me, long *out)
{
    if (me == 0) {
        if (gshmem_putmem(s->data, s->source, sizeof s->data, 1) || gshmem_fence() ||
            gshmem_long_atomic_set(&s->counter, 1L, 1) || gshmem_fence() ||
            gshmem_uint64_p(&s->ready, 1, 1))
            out[1] = 1;
        return;
    }
    while (*(volatile uint64_t *)&s->ready != 1)
        ;
    if (gshmem_long_atomic_fetch_nbi(&out[3], &s->counter, 1) || gshmem_quiet())
        out[1] = 1;
    out[0] = s->data[1];
}

__global__ void sync_in_kernel(long *out)
{
    if (gshmem_sync_all())
        out[1] = 1;
}

/* Rounds of kernels and of the host overlap, and PEs may begin them in different orders. */
static long rounds_cross(struct shared *s, long *out)
{
    const struct timespec pause = {0, 20000000};

    if (me == 0) {
        sync_in_kernel<<<1, 1>>>(out);
        nanosleep(&pause, NULL); /* the kernel has begun its round, most likely */
        CHECK_OK(gshmem_putmem(s->data, s->source, sizeof s->data, 1));
    }
    CHECK_OK(gshmem_barrier_all());
    const long got = me == 1 ? s->data[2] : 0;
    if (me == 1)
        sync_in_kernel<<<1, 1>>>(out);
    return got;
}

/* Every case begins with zeros, and with all PEs. */
static void begin(struct shared *s, int late)
{
    const struct timespec pause = {0, 30000000};

    CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_OK(gshmem_barrier_all());
    *s = {};
    CHECK_OK(gshmem_barrier_all());
    if (me == late) /* which makes another order likely; the report is the same */
        nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    const int late = argc > 2 ? atoi(argv[2]) : 9;
    long *out, sum = 0;

    mended = argc > 1 && strcmp(argv[1], "mended") == 0;
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    struct shared *s = (struct shared *)gshmem_malloc(sizeof *s);
    CHECK(s);
    CHECK_EQ(cudaMalloc((void **)&out, (N + 2) * sizeof *out), cudaSuccess);
    begin(s, late);
    single_then_load<<<1, 1>>>(s, mended, me, out);
    begin(s, late);
    block_put<<<1, N>>>(s, mended, me, out);
    begin(s, late);
    no_fence<<<1, 1>>>(s, mended, me, out);
    begin(s, late);
    source_reused<<<1, 1>>>(s, mended, me, out);
    begin(s, late);
    added_and_stored<<<1, 1>>>(s, mended, me, out);
    begin(s, late);
    sum += read_by_host(s, out);
    begin(s, late);
    indexed_puts<<<1, 1>>>(s, mended, me, out);
    if (mended) {
        begin(s, late);
        after_refusal<<<1, 1>>>(s, me, out);
        begin(s, late);
        fetched_later<<<1, 1>>>(s, me, out);
        begin(s, late);
        sum += rounds_cross(s, out);
    }
    CHECK_EQ(cudaDeviceSynchronize(), cudaSuccess);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(s));
    CHECK_EQ(cudaFree(out), cudaSuccess);
    CHECK_OK(gshmem_finalize());
    return sum != 0;
}
