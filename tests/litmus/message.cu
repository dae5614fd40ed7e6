/* Message passing: who has seen the flag sees the data. All PEs send to the next and receive from the
 * one before, some messages in flight, each way there is to order a flag after its data; in kernels,
 * and between a kernel and a host thread. A blocking put's source is overwritten at once. */
#include "litmus.h"

enum way {
    PUT_FENCE,       /* put; fence; signal */
    PUT_NBI_FENCE,   /* put_nbi; fence; signal */
    PUT_NBI_QUIET,   /* put_nbi; quiet; signal */
    PUT_SIGNAL,
    PUT_SIGNAL_NBI,
    P_FENCE,         /* p of each word; fence; p of the flag */
    PUT_FENCE_ATOMIC /* put; fence; an atomic set */
};

#define SLOTS 16u /* messages in flight */

/* Room for the messages of all ways. */
struct mail {
    char *box;        /* symmetric: [SLOTS] of `space` */
    char *draft;      /* this PE's own: the same */
    size_t space;
    uint64_t *flag;   /* symmetric: [SLOTS], the round that has arrived */
    uint64_t *taken;  /* symmetric, at the sender: the last round that was received */
    const char *text; /* what messages are pieces of */
    int to, from;
    size_t least, most; /* bytes of a message */
};

#define TEXTS 1021 /* pieces begin at so many places */

struct message {
    size_t bytes;
    unsigned offset; /* of the box and the draft, where they begin */
    const char *text;
};

static __host__ __device__ inline struct message message_of(const struct mail *m, uint64_t seed,
                                                            uint64_t round, enum way way)
{
    uint64_t random = mixed2(seed, round);
    struct message one;

    one.bytes = m->least + random % (m->most - m->least + 1);
    one.offset = (unsigned)(random >> 32) % 16;
    if (way == P_FENCE) { /* whole words */
        one.bytes = one.bytes % 64 & ~(size_t)7;
        one.offset &= 8;
    }
    one.text = m->text + (random >> 40) % TEXTS;
    return one;
}

/* ---- One thread, on either side --------------------------------------------------------------- */

template <int way>
static __host__ __device__ gshmem_status_t send_one(char *dest, const char *draft, size_t bytes,
                                                    uint64_t *flag, uint64_t round, int to)
{
    gshmem_status_t status = GSHMEM_OK;

    switch (way) {
    case PUT_SIGNAL:
        return gshmem_putmem_signal(dest, draft, bytes, flag, round, GSHMEM_SIGNAL_SET, to);
    case PUT_SIGNAL_NBI:
        return gshmem_putmem_signal_nbi(dest, draft, bytes, flag, round, GSHMEM_SIGNAL_SET, to);
    case P_FENCE:
        for (size_t i = 0; i < bytes && !status; i += sizeof(uint64_t))
            status = gshmem_uint64_p((uint64_t *)(dest + i), *(const uint64_t *)(draft + i), to);
        break;
    case PUT_FENCE:
    case PUT_FENCE_ATOMIC:
        status = gshmem_putmem(dest, draft, bytes, to);
        break;
    default:
        status = gshmem_putmem_nbi(dest, draft, bytes, to);
    }
    if (!status)
        status = way == PUT_NBI_QUIET ? gshmem_quiet() : gshmem_fence();
    if (status)
        return status;
    if (way == P_FENCE)
        return gshmem_uint64_p(flag, round, to);
    if (way == PUT_FENCE_ATOMIC)
        return gshmem_uint64_atomic_set(flag, round, to);
    return gshmem_signal_set(flag, round, to);
}

template <int way>
static __host__ __device__ void send(struct mail m, uint64_t seed, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        struct message one = message_of(&m, seed, r, (enum way)way);
        size_t at = (r % SLOTS) * m.space + one.offset;

        if (r > (int)SLOTS)
            gshmem_signal_wait_until(m.taken, GSHMEM_CMP_GE, r - SLOTS);
        for (size_t i = 0; i < one.bytes; i++)
            m.draft[at + i] = one.text[i];
        litmus_delay(seed, r);
        EXPECT(found, send_one<way>(m.box + at, m.draft + at, one.bytes, m.flag + r % SLOTS, r, m.to),
               GSHMEM_OK);
        for (size_t i = 0; way == PUT_SIGNAL && i < one.bytes; i++)
            m.draft[at + i] = 0; /* it may be reused */
        if (r % SLOTS == 0) /* so may those of nonblocking ones */
            EXPECT(found, gshmem_quiet(), GSHMEM_OK);
    }
}

template <int way>
static __host__ __device__ void receive(struct mail m, uint64_t seed, int rounds,
                                        struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        struct message one = message_of(&m, seed, r, (enum way)way);
        const char *box = m.box + (r % SLOTS) * m.space + one.offset;

        EXPECT(found, gshmem_signal_wait_until(m.flag + r % SLOTS, GSHMEM_CMP_EQ, r), r);
        for (size_t i = 0; i < one.bytes; i++)
            EXPECT(found, box[i], one.text[i]);
        litmus_delay(seed + 1, r);
        EXPECT(found, gshmem_signal_set(m.taken, r, m.from), GSHMEM_OK);
    }
}

/* Block 0 sends, block 1 receives; one of them alone has the role `only`. */
template <int way>
__global__ void pass(struct mail m, uint64_t seed, int rounds, int only, struct found *found)
{
    if ((gridDim.x == 1 ? (unsigned)only : blockIdx.x) == 0)
        send<way>(m, seed, rounds, found);
    else
        receive<way>(m, seed, rounds, found);
}

/* ---- A warp or a block ------------------------------------------------------------------------ */

template <int scope> __device__ unsigned member(void)
{
    return scope == GSHMEM_SCOPE_WARP ? threadIdx.x % 32 : threadIdx.x;
}

template <int scope> __device__ void meet(void)
{
    if (scope == GSHMEM_SCOPE_WARP)
        __syncwarp();
    else
        __syncthreads();
}

/* Each thread writes a part of the draft: what all of them wrote is sent. */
template <int scope>
__device__ void send_together(struct mail m, uint64_t seed, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        struct message one = message_of(&m, seed, r, PUT_SIGNAL_NBI);
        size_t at = (r % SLOTS) * m.space + one.offset;
        uint64_t *flag = m.flag + r % SLOTS;

        if (member<scope>() == 0 && r > (int)SLOTS)
            gshmem_signal_wait_until(m.taken, GSHMEM_CMP_GE, r - SLOTS);
        meet<scope>();
        for (size_t i = member<scope>(); i < one.bytes; i += blockDim.x)
            m.draft[at + i] = one.text[i];
        gshmem_status_t status =
            scope == GSHMEM_SCOPE_WARP
                ? gshmem_putmem_signal_nbi_warp(m.box + at, m.draft + at, one.bytes, flag, r,
                                                GSHMEM_SIGNAL_SET, m.to)
                : gshmem_putmem_signal_nbi_block(m.box + at, m.draft + at, one.bytes, flag, r,
                                                 GSHMEM_SIGNAL_SET, m.to);
        EXPECT(found, status, GSHMEM_OK);
        if (r % SLOTS == 0)
            EXPECT(found, gshmem_quiet(), GSHMEM_OK);
    }
}

template <int scope>
__device__ void receive_together(struct mail m, uint64_t seed, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        struct message one = message_of(&m, seed, r, PUT_SIGNAL_NBI);
        const char *box = m.box + (r % SLOTS) * m.space + one.offset;

        if (member<scope>() == 0)
            EXPECT(found, gshmem_signal_wait_until(m.flag + r % SLOTS, GSHMEM_CMP_EQ, r), r);
        meet<scope>();
        for (size_t i = member<scope>(); i < one.bytes; i += blockDim.x)
            EXPECT(found, box[i], one.text[i]);
        meet<scope>();
        if (member<scope>() == 0)
            EXPECT(found, gshmem_signal_set(m.taken, r, m.from), GSHMEM_OK);
    }
}

template <int scope>
__global__ void pass_together(struct mail m, uint64_t seed, int rounds, struct found *found)
{
    if (blockIdx.x == 0)
        send_together<scope>(m, seed, rounds, found);
    else
        receive_together<scope>(m, seed, rounds, found);
}

/* ---- All of them ------------------------------------------------------------------------------ */

static void begin(const struct mail *m)
{
    CHECK_OK(gshmem_barrier_all());
    set_bytes(m->flag, 0, SLOTS * sizeof *m->flag);
    set_value(m->taken, (uint64_t)0);
    memset(m->draft, 0x55, SLOTS * m->space);
    set_bytes(m->box, 0x55, SLOTS * m->space);
    CHECK_OK(gshmem_barrier_all());
}

template <int way> static void test(const struct litmus *l, const struct mail *m, const char *name)
{
    begin(m);
    pass<way><<<2, 1>>>(*m, l->seed, l->rounds, 0, l->found);
    litmus_check(l, name);
}

/* A host thread has one of the roles. */
template <int way>
static void test_with_host(const struct litmus *l, const struct mail *m, const char *name)
{
    begin(m);
    pass<way><<<1, 1>>>(*m, l->seed, l->rounds, 0, l->found);
    receive<way>(*m, l->seed, l->rounds, l->found);
    litmus_check(l, name);
    begin(m);
    pass<way><<<1, 1>>>(*m, l->seed, l->rounds, 1, l->found);
    send<way>(*m, l->seed, l->rounds, l->found);
    litmus_check(l, name);
}

static void test_together(const struct litmus *l, const struct mail *m)
{
    begin(m);
    pass_together<GSHMEM_SCOPE_WARP><<<2, 32>>>(*m, l->seed, l->rounds, l->found);
    litmus_check(l, "put_signal_nbi by a warp");
    begin(m);
    pass_together<GSHMEM_SCOPE_BLOCK><<<2, 48>>>(*m, l->seed, l->rounds, l->found);
    litmus_check(l, "put_signal_nbi by a block");
}

/* Messages of more than a command copies at once, and of 1 MiB: fewer of them. */
static void test_large(const struct litmus *l, struct mail m)
{
    struct litmus some = *l;

    m.space = 4 * GSHMEM_COPIED;
    some.rounds = l->rounds / 10;
    m.least = GSHMEM_COPIED - 8;
    m.most = 3 * GSHMEM_COPIED;
    test<PUT_SIGNAL>(&some, &m, "put_signal of some KiB");
    test<PUT_SIGNAL_NBI>(&some, &m, "put_signal_nbi of some KiB");
    test<PUT_NBI_FENCE>(&some, &m, "put_nbi of some KiB, fence, signal");
    test<PUT_FENCE>(&some, &m, "put of some KiB, fence, signal");
    some.rounds = l->rounds / 200 + 1;
    m.least = m.most = (size_t)1 << 20;
    m.space = m.most + 16;
    test<PUT_SIGNAL_NBI>(&some, &m, "put_signal_nbi of 1 MiB");
    test<PUT_NBI_FENCE>(&some, &m, "put_nbi of 1 MiB, fence, signal");
}

int main(int argc, char **argv)
{
    const size_t most = (size_t)1 << 20, space = most + 16;
    struct litmus l = litmus_begin(argc, argv);
    struct mail m;

    m.space = 256;
    m.box = symmetric_array<char>(SLOTS * space);
    m.draft = shared_array<char>(SLOTS * space);
    m.flag = symmetric_array<uint64_t>(SLOTS);
    m.taken = symmetric_array<uint64_t>(1);
    m.to = (gshmem_my_pe() + 1) % gshmem_n_pes();
    m.from = (gshmem_my_pe() + gshmem_n_pes() - 1) % gshmem_n_pes();
    m.least = 0;
    m.most = 200;
    char *text = shared_array<char>(most + TEXTS);
    for (size_t i = 0; i < most + TEXTS; i++)
        text[i] = (char)mixed(i);
    m.text = text;

    test<PUT_FENCE>(&l, &m, "put, fence, signal");
    test<PUT_NBI_FENCE>(&l, &m, "put_nbi, fence, signal");
    test<PUT_NBI_QUIET>(&l, &m, "put_nbi, quiet, signal");
    test<PUT_SIGNAL>(&l, &m, "put_signal");
    test<PUT_SIGNAL_NBI>(&l, &m, "put_signal_nbi");
    test<P_FENCE>(&l, &m, "p, fence, p");
    test<PUT_FENCE_ATOMIC>(&l, &m, "put, fence, atomic set");
    test_together(&l, &m);
    if (HOST_TAKES_PART) {
        test_with_host<PUT_FENCE>(&l, &m, "put, fence, signal with a host thread");
        test_with_host<PUT_SIGNAL_NBI>(&l, &m, "put_signal_nbi with a host thread");
    }
    test_large(&l, m);

    CHECK_OK(gshmem_free(m.box));
    CHECK_OK(gshmem_free(m.flag));
    CHECK_OK(gshmem_free(m.taken));
    CHECK_CUDA(cudaFree(m.draft));
    CHECK_CUDA(cudaFree(text));
    litmus_end(&l);
    return 0;
}
