/* Flags between PEs in inline PTX, at addresses from gshmem_ptr(), as kernels of public libraries
 * write them: tokens and counts, data beside flags, a sentinel, and barriers. For two PEs that are
 * mapped; for nvcc alone.
 *
 *     inline_flags ROUNDS */
#include "litmus/litmus.h"

enum { SLOTS = 4, TOKEN = 128, LANES = 32, EMPTY = 0x80000000 };

struct places {
    uint32_t *tokens; /* [SLOTS][TOKEN] */
    int *count;       /* of tokens that have come */
    uint32_t *beside; /* [LANES][4]: data, flag, data, flag */
    uint32_t *cells;  /* [LANES][4], EMPTY where nothing has come */
    int *arrived;
    uint64_t *taken;
};

struct job {
    struct places mine, theirs;
    int me;
};

static __device__ uint32_t word_of(int pe, int round, int i)
{
    return (uint32_t)(pe * 1000003 + round * 257 + i * 13) & 0x7fffffff;
}

static __device__ int load_acquire(const int *at)
{
    int value;

    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

static __device__ uint64_t load_volatile(const uint64_t *at)
{
    uint64_t value;

    asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

/* A barrier of both PEs: what was stored before is seen behind it. */
static __device__ void meet(const struct job *job, int round)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("fence.acq_rel.sys;" ::: "memory");
        asm volatile(
            "{\n\t.reg .s32 before;\n\t"
            "atom.add.release.sys.global.s32 before, [%0], %1;\n\t}" ::"l"(job->theirs.arrived),
            "r"(1)
            : "memory");
        while (load_acquire(job->mine.arrived) < round)
            ;
    }
    __syncthreads();
}

/* Tokens in slots, which are counted. Warp 0 sends, warp 1 receives. */
__global__ void dispatch(struct job job, int rounds, struct found *found)
{
    const int lane = threadIdx.x % LANES;

    for (int r = 1; r <= rounds; r++) {
        const int slot = r % SLOTS;
        if (threadIdx.x < LANES) {
            uint32_t *to = job.theirs.tokens + slot * TOKEN + 4 * lane;
            while (r > SLOTS && load_volatile(job.mine.taken) < (uint64_t)(r - SLOTS))
                ;
            asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                         "r"(word_of(job.me, r, 4 * lane)), "r"(word_of(job.me, r, 4 * lane + 1)),
                         "r"(word_of(job.me, r, 4 * lane + 2)),
                         "r"(word_of(job.me, r, 4 * lane + 3))
                         : "memory");
            __syncwarp();
            if (lane == 0)
                asm volatile("red.release.sys.global.add.s32 [%0], %1;" ::"l"(job.theirs.count),
                             "r"(1)
                             : "memory");
        } else {
            const uint32_t *from = job.mine.tokens + slot * TOKEN + 4 * lane;
            uint32_t a, b, c, d;
            while (load_acquire(job.mine.count) < r)
                ;
            asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                         : "l"(from)
                         : "memory");
            EXPECT(found, a, word_of(1 - job.me, r, 4 * lane));
            EXPECT(found, d, word_of(1 - job.me, r, 4 * lane + 3));
            EXPECT(found, b ^ c,
                   word_of(1 - job.me, r, 4 * lane + 1) ^ word_of(1 - job.me, r, 4 * lane + 2));
            __syncwarp();
            if (lane == 0)
                asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(job.theirs.taken),
                             "l"((uint64_t)r)
                             : "memory");
        }
    }
}

/* Data beside its flag, in one store of 16 bytes; then a sentinel in the place of a flag. */
__global__ void beside(struct job job, int rounds, struct found *found)
{
    const int lane = threadIdx.x;

    for (int r = 1; r <= rounds; r++) {
        const uint32_t x = word_of(job.me, r, lane);
        uint32_t a, f, b, g;
        asm volatile(
            "st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(job.theirs.beside + 4 * lane),
            "r"(x), "r"(r), "r"(~x)
            : "memory");
        do
            asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a), "=r"(f), "=r"(b), "=r"(g)
                         : "l"(job.mine.beside + 4 * lane)
                         : "memory");
        while (f != (uint32_t)r || g != (uint32_t)r);
        EXPECT(found, a, word_of(1 - job.me, r, lane));
        EXPECT(found, a ^ b, ~0u);

        asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %1, %2};" ::"l"(job.theirs.cells +
                                                                                  4 * lane),
                     "r"(x), "r"(r)
                     : "memory");
        do
            asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a), "=r"(f), "=r"(b), "=r"(g)
                         : "l"(job.mine.cells + 4 * lane)
                         : "memory");
        while (a == EMPTY || f == EMPTY || b == EMPTY || g == EMPTY);
        EXPECT(found, a, word_of(1 - job.me, r, lane));
        EXPECT(found, f, (uint32_t)r);
        asm volatile("st.global.v4.b32 [%0], {%1, %1, %1, %1};" ::"l"(job.mine.cells + 4 * lane),
                     "r"(EMPTY)
                     : "memory");
        meet(&job, r);
    }
}

static struct places on_pe(const struct places *p, int pe)
{
    struct places there;

    there.tokens = (uint32_t *)gshmem_ptr(p->tokens, pe);
    there.count = (int *)gshmem_ptr(p->count, pe);
    there.beside = (uint32_t *)gshmem_ptr(p->beside, pe);
    there.cells = (uint32_t *)gshmem_ptr(p->cells, pe);
    there.arrived = (int *)gshmem_ptr(p->arrived, pe);
    there.taken = (uint64_t *)gshmem_ptr(p->taken, pe);
    CHECK(there.tokens && there.count && there.beside && there.cells && there.arrived &&
          there.taken);
    return there;
}

int main(int argc, char **argv)
{
    struct litmus l = litmus_begin(argc, argv);
    uint32_t empty[4 * LANES];
    struct job job;

    CHECK_EQ(gshmem_n_pes(), 2);
    for (int i = 0; i < 4 * LANES; i++)
        empty[i] = EMPTY;
    job.me = gshmem_my_pe();
    job.mine.tokens = symmetric_array<uint32_t>(SLOTS * TOKEN);
    job.mine.count = symmetric_array<int>(1);
    job.mine.beside = symmetric_array<uint32_t>(4 * LANES);
    job.mine.cells = symmetric_array<uint32_t>(4 * LANES);
    job.mine.arrived = symmetric_array<int>(1);
    job.mine.taken = symmetric_array<uint64_t>(1);
    copy_in(job.mine.cells, empty, 4 * LANES);
    job.theirs = on_pe(&job.mine, 1 - job.me);
    CHECK_OK(gshmem_barrier_all());
    dispatch<<<1, 2 * LANES>>>(job, l.rounds, l.found);
    litmus_check(&l, "tokens and counts");
    beside<<<1, LANES>>>(job, l.rounds, l.found);
    litmus_check(&l, "data beside flags");
    CHECK_OK(gshmem_free(job.mine.tokens));
    CHECK_OK(gshmem_free(job.mine.count));
    CHECK_OK(gshmem_free(job.mine.beside));
    CHECK_OK(gshmem_free(job.mine.cells));
    CHECK_OK(gshmem_free(job.mine.arrived));
    CHECK_OK(gshmem_free(job.mine.taken));
    litmus_end(&l);
    return 0;
}
