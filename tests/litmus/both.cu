/* fence and quiet, where the host has issued what is before, or after, and where a kernel has: four pairs.
 *
 *  - Fence: one issues puts of many sizes; the same or the other fences, and signals. Or the host fences, and a
 *    kernel signals.
 *  - Quiet: one issues nonblocking gets; the same or the other quiets, and looks at what they brought. */
#include "litmus.h"

#define WORDS   4096u  /* by p, each */
#define BIG     (UINT64_C(1) << 21) /* bytes in one put, now and then: what takes a transport several turns */
#define THREADS 128

struct objects {
    uint64_t *word, *big; /* symmetric */
    uint64_t *source;     /* as much as `big`, here alone */
    uint64_t *flag;       /* symmetric */
    int to;
};

static __host__ __device__ bool is_big(int round)
{
    return round % 8 == 0;
}

static __host__ __device__ void put_share(struct objects o, int round, unsigned rank, unsigned size)
{
    if (rank == round / 8 % 4 * THREADS % size && is_big(round)) /* each block in turn */
        gshmem_putmem_nbi(o.big, o.source, BIG, o.to);
    for (unsigned i = rank; i < WORDS; i += size)
        gshmem_uint64_p(o.word + i, (uint64_t)round + i, o.to);
}

__global__ void put_in_kernel(struct objects o, int round)
{
    put_share(o, round, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

static __host__ __device__ gshmem_status_t signal(struct objects o, int round)
{
    return gshmem_signal_set(o.flag, (uint64_t)round, o.to);
}

static __host__ __device__ gshmem_status_t fence_and_signal(struct objects o, int round)
{
    gshmem_status_t status = gshmem_fence();

    return status ? status : signal(o, round);
}

/* One block of them, which has a channel of its own. */
__global__ void fence_in_kernel(struct objects o, int round, struct found *found)
{
    if (blockIdx.x == (unsigned)round % gridDim.x)
        EXPECT(found, fence_and_signal(o, round), GSHMEM_OK);
}

__global__ void signal_in_kernel(struct objects o, int round, struct found *found)
{
    if (blockIdx.x == (unsigned)round % gridDim.x)
        EXPECT(found, signal(o, round), GSHMEM_OK);
}

/* Whether what was put there in a round has all come. */
__global__ void check_put(struct objects o, int round, struct found *found)
{
    EXPECT(found, gshmem_signal_wait_until(o.flag, GSHMEM_CMP_EQ, round), round);
    for (unsigned i = 0; i < WORDS; i++)
        EXPECT(found, ((volatile uint64_t *)o.word)[i], (uint64_t)round + i);
    if (is_big(round))
        EXPECT(found, ((volatile uint64_t *)o.big)[BIG / 8 - 1], round);
}

enum { HOST_FENCES, KERNEL_FENCES, HOST_FENCES_KERNEL_SIGNALS };

static void test_fence(const struct litmus *l, struct objects o, bool by_kernel, int then)
{
    static const char *const fences[] = {"the host fences", "a kernel fences",
                                         "the host fences, a kernel signals"};
    char test[80];

    for (int r = 1; r <= l->rounds / 100; r++) {
        set_value(o.flag, UINT64_C(0));
        set_value(o.source + BIG / 8 - 1, (uint64_t)r);
        CHECK_OK(gshmem_barrier_all());
        if (by_kernel)
            put_in_kernel<<<4, THREADS>>>(o, r);
        else
            put_share(o, r, 0, 1);
        CHECK_LAUNCH();
        if (then == KERNEL_FENCES) {
            fence_in_kernel<<<4, 1>>>(o, r, l->found);
        } else if (then == HOST_FENCES) {
            CHECK_OK(fence_and_signal(o, r));
        } else {
            CHECK_OK(gshmem_fence());
            signal_in_kernel<<<4, 1>>>(o, r, l->found);
        }
        check_put<<<1, 1>>>(o, r, l->found);
        CHECK_LAUNCH();
        CHECK_OK(gshmem_barrier_all());
    }
    snprintf(test, sizeof test, "fence: %s puts, %s", by_kernel ? "a kernel" : "the host",
             fences[then]);
    litmus_check(l, test);
}

/* ---- Quiet ------------------------------------------------------------------------------------- */

static __host__ __device__ void get(struct objects o)
{
    gshmem_getmem_nbi(o.source, o.big, BIG, o.to);
}

__global__ void get_in_kernel(struct objects o)
{
    get(o);
}

/* Whether it has come; it is looked at before anybody else can complete it. */
static __host__ __device__ void quiet_and_check(struct objects o, int round, struct found *found)
{
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
    EXPECT(found, ((volatile uint64_t *)o.source)[BIG / 8 - 1], round);
}

__global__ void quiet_in_kernel(struct objects o, int round, struct found *found)
{
    quiet_and_check(o, round, found);
}

static void test_quiet(const struct litmus *l, struct objects o, bool by_kernel, bool then_kernel)
{
    char test[80];

    for (int r = 1; r <= l->rounds / 500; r++) {
        set_value(o.big + BIG / 8 - 1, (uint64_t)r);
        CHECK_OK(gshmem_barrier_all());
        if (by_kernel)
            get_in_kernel<<<1, 1>>>(o);
        else
            get(o);
        CHECK_LAUNCH();
        if (then_kernel)
            quiet_in_kernel<<<1, 1>>>(o, r, l->found);
        else
            quiet_and_check(o, r, l->found);
        CHECK_LAUNCH();
        CHECK_OK(gshmem_barrier_all());
    }
    snprintf(test, sizeof test, "quiet: %s gets, %s quiets", by_kernel ? "a kernel" : "the host",
             then_kernel ? "a kernel" : "the host");
    litmus_check(l, test);
}

int main(int argc, char **argv)
{
    struct litmus l = litmus_begin(argc, argv);
    struct objects o;

    o.word = symmetric_array<uint64_t>(WORDS);
    o.big = symmetric_array<uint64_t>(BIG / 8);
    o.flag = symmetric_array<uint64_t>(1);
    o.source = shared_array<uint64_t>(BIG / 8);
    o.to = (gshmem_my_pe() + 1) % gshmem_n_pes();
    for (int pair = 0; pair < 4; pair++) {
        test_fence(&l, o, pair & 1, pair & 2 ? KERNEL_FENCES : HOST_FENCES);
        test_quiet(&l, o, pair & 1, pair & 2);
    }
    test_fence(&l, o, false, HOST_FENCES_KERNEL_SIGNALS);
    test_fence(&l, o, true, HOST_FENCES_KERNEL_SIGNALS);
    CHECK_OK(gshmem_free(o.word));
    CHECK_OK(gshmem_free(o.big));
    CHECK_OK(gshmem_free(o.flag));
    CHECK_CUDA(cudaFree(o.source));
    litmus_end(&l);
    return 0;
}
