/* The orders that the device headers make, in few instructions: for weak_orders.py, which plants
 * defects in them. tests/litmus has all of it. */
#include "litmus/litmus.h"

#define SLOTS 8
#define WORDS 6

enum way { P_FENCE, PUT_SIGNAL, PUT_SIGNAL_ADD };

struct mail {
    uint64_t *box;   /* symmetric: [SLOTS][WORDS] */
    uint64_t *flag;  /* symmetric: [SLOTS] */
    uint64_t *taken; /* symmetric */
    uint64_t *draft; /* [SLOTS][WORDS] */
    int other;
};

static __device__ void send(const struct mail *m, int way, int r, struct found *found)
{
    uint64_t *box = m->box + r % SLOTS * WORDS, *draft = m->draft + r % SLOTS * WORDS;
    uint64_t *flag = m->flag + r % SLOTS;

    for (int i = 0; i < WORDS; i++)
        draft[i] = (uint64_t)r * WORDS + i;
    if (way != P_FENCE) {
        EXPECT(found,
               gshmem_putmem_signal_nbi(
                   box, draft, WORDS * sizeof *box, flag, way == PUT_SIGNAL ? r : SLOTS,
                   way == PUT_SIGNAL ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD, m->other),
               GSHMEM_OK);
        return;
    }
    for (int i = 0; i < WORDS; i++)
        EXPECT(found, gshmem_uint64_p(box + i, draft[i], m->other), GSHMEM_OK);
    EXPECT(found, gshmem_fence(), GSHMEM_OK);
    EXPECT(found, gshmem_uint64_p(flag, r, m->other), GSHMEM_OK);
}

/* Block 0 sends, block 1 receives. */
__global__ void pass(struct mail m, int way, int rounds, struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        if (blockIdx.x == 0) {
            if (r > SLOTS)
                gshmem_signal_wait_until(m.taken, GSHMEM_CMP_GE, r - SLOTS);
            send(&m, way, r, found);
            continue;
        }
        uint64_t come = way == PUT_SIGNAL_ADD ? (uint64_t)(r + SLOTS - 1) / SLOTS * SLOTS : r;
        EXPECT(found, gshmem_signal_wait_until(m.flag + r % SLOTS, GSHMEM_CMP_GE, come), come);
        for (int i = 0; i < WORDS; i++)
            EXPECT(found, m.box[r % SLOTS * WORDS + i], (uint64_t)r * WORDS + i);
        EXPECT(found, gshmem_uint64_p(m.taken, r, m.other), GSHMEM_OK);
    }
}

/* Both store, quiet, and load what the other stores. */
__global__ void cross(uint64_t *x, uint64_t *ready, uint64_t *seen, int other, int rounds,
                      struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        EXPECT(found, gshmem_uint64_p(ready, r, other), GSHMEM_OK);
        gshmem_signal_wait_until(ready, GSHMEM_CMP_GE, r);
        EXPECT(found, gshmem_uint64_p(&x[r], 1, other), GSHMEM_OK);
        EXPECT(found, gshmem_quiet(), GSHMEM_OK);
        seen[r] = gshmem_uint64_g(&x[r], gshmem_my_pe());
    }
}

static void test_pass(const struct litmus *l, struct mail m, int way, const char *name)
{
    set_bytes(m.flag, 0, SLOTS * sizeof *m.flag);
    set_value(m.taken, (uint64_t)0);
    CHECK_OK(gshmem_barrier_all());
    pass<<<2, 1>>>(m, way, l->rounds, l->found);
    litmus_check(l, name);
}

static void test_cross(const struct litmus *l, int other)
{
    uint64_t *x = symmetric_array<uint64_t>(l->rounds + 1), *ready = symmetric_array<uint64_t>(1);
    uint64_t *seen = symmetric_array<uint64_t>(l->rounds + 1);
    uint64_t *theirs = shared_array<uint64_t>(l->rounds + 1);

    cross<<<1, 1>>>(x, ready, seen, other, l->rounds, l->found);
    litmus_check(l, "store buffering");
    CHECK_OK(gshmem_getmem(theirs, seen, (l->rounds + 1) * sizeof *seen, other));
    for (int r = 1; r <= l->rounds; r++)
        EXPECT(l->found, seen[r] | theirs[r], 1);
    litmus_check(l, "store buffering: neither saw the other's");
    CHECK_OK(gshmem_free(x));
    CHECK_OK(gshmem_free(ready));
    CHECK_OK(gshmem_free(seen));
    CHECK_CUDA(cudaFree(theirs));
}

int main(int argc, char **argv)
{
    struct litmus l = litmus_begin(argc, argv);
    struct mail m;

    m.box = symmetric_array<uint64_t>(SLOTS * WORDS);
    m.flag = symmetric_array<uint64_t>(SLOTS);
    m.taken = symmetric_array<uint64_t>(1);
    m.draft = shared_array<uint64_t>(SLOTS * WORDS);
    m.other = 1 - gshmem_my_pe();
    test_pass(&l, m, P_FENCE, "p, fence, p");
    test_pass(&l, m, PUT_SIGNAL, "put_signal");
    test_pass(&l, m, PUT_SIGNAL_ADD, "put_signal with an addition");
    test_cross(&l, m.other);
    CHECK_OK(gshmem_free(m.box));
    CHECK_OK(gshmem_free(m.flag));
    CHECK_OK(gshmem_free(m.taken));
    CHECK_CUDA(cudaFree(m.draft));
    litmus_end(&l);
    return 0;
}
