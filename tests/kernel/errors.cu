/* What kernels do wrong: each mistake gets its status, and one line on stderr that names the call, the
 * address and the PE (the launcher's output is held to that). The last PE makes the one that is named;
 * the job goes on.
 *
 *     errors MISTAKE */
#include "kernel.h"

enum mistake {
    PUT_PE, GET_PE, NBI_PE, PUT_OWN, GET_OWN, PUT_END, GET_END, FLAG_OWN, FLAG_OP, FLAG_ODD, FLAG_PE,
    P_PE, P_OWN, ATOMIC_OWN, ATOMIC_ODD, NO_CTX, BLOCK_OWN, WARP_PE, G_OWN, G_PE, FETCH_PE, QUIET_PE,
    WAIT_CMP, WAIT_NULL, ALL_ODD, VALUES_NULL, FLAG_WAIT_CMP, ANY_CMP, SOME_NULL, TEST_ODD, TESTS_CMP,
    TESTS_NULL, NOTHING, PUT_NULL, GET_NULL, NBI_NULL, FLAG_NULL, STRIDED_NULL, FETCH_NULL, QUIET_NULL, QUIET_CTX,
    FENCE_CTX, GET_PAST, INDEXED_PES, INDEXED_ROUND, INDEXED_BEFORE
};

struct objects {
    char *word;  /* symmetric; nothing but the heap's end behind it for `end` bytes */
    char *own;   /* not symmetric */
    size_t end;  /* more than there is */
    int none;    /* no PE */
    int other;
    uint64_t *null; /* which no compiler knows */
};

__device__ gshmem_status_t alone(enum mistake mistake, struct objects o)
{
    uint64_t *word = (uint64_t *)o.word, *own = (uint64_t *)o.own;

    switch (mistake) {
    case PUT_PE:
        return gshmem_putmem(word, own, 8, o.none);
    case GET_PE:
        return gshmem_getmem(own, word, 8, -3);
    case NBI_PE:
        return gshmem_putmem_nbi(word, own, 8, o.none);
    case PUT_OWN:
        return gshmem_putmem(own, word, 24, o.other);
    case GET_OWN:
        return gshmem_getmem_nbi(word, own, 24, o.other);
    case PUT_END:
        return gshmem_putmem(word, own, o.end, o.other);
    case GET_PAST: /* the object, not the heap: with GSHMEM_CHECK=memory */
        return gshmem_getmem(own, word + 7, 16, o.other);
    case GET_END:
        return gshmem_getmem_nbi(own, word, o.end, o.other);
    case FLAG_OWN:
        return gshmem_putmem_signal(word, own, 8, own, 1, GSHMEM_SIGNAL_SET, o.other);
    case FLAG_OP:
        return gshmem_putmem_signal_nbi(word, own, 8, word + 1, 1, 7, o.other);
    case FLAG_ODD:
        return gshmem_signal_add((uint64_t *)(o.word + 4), 1, o.other);
    case FLAG_PE:
        return gshmem_signal_set(word, 1, o.none);
    case P_PE:
        return gshmem_uint64_p(word, 1, o.none);
    case P_OWN:
        return gshmem_uint64_p(own, 1, o.other);
    case ATOMIC_OWN:
        return gshmem_uint64_atomic_add(own, 1, o.other);
    case ATOMIC_ODD:
        return gshmem_uint64_atomic_inc((uint64_t *)(o.word + 4), o.other);
    case NO_CTX:
        return gshmem_ctx_putmem(GSHMEM_CTX_INVALID, word, own, 8, o.other);
    case WAIT_CMP:
        return gshmem_uint64_wait_until(word, 9, 1);
    case WAIT_NULL:
        return gshmem_int_wait_until(NULL, GSHMEM_CMP_EQ, 1);
    case ALL_ODD:
        return gshmem_uint64_wait_until_all((uint64_t *)(o.word + 4), 2, NULL, GSHMEM_CMP_NE, 1);
    case NOTHING: /* which is nowhere, also at NULL, and no mistake */
        if (gshmem_putmem(NULL, own, 0, o.other) || gshmem_putmem_nbi(NULL, NULL, 0, o.other) ||
            gshmem_getmem(own, NULL, 0, o.other) || gshmem_getmem_nbi(NULL, NULL, 0, o.other) ||
            gshmem_putmem(own, own, 0, o.other))
            return GSHMEM_ERR_MISMATCH;
        return gshmem_putmem(NULL, NULL, 0, o.none); /* but there is such a PE, or not */
    case PUT_NULL:
        return gshmem_putmem(word, o.null, 24, o.other);
    case GET_NULL:
        return gshmem_getmem(o.null, word, 24, o.other);
    case NBI_NULL:
        return gshmem_uint64_put_nbi(word, o.null, 1, o.other);
    case FLAG_NULL:
        return gshmem_putmem_signal(word, o.null, 8, word + 1, 1, GSHMEM_SIGNAL_SET, o.other);
    case STRIDED_NULL:
        return gshmem_uint64_iget(o.null, word, 1, 2, 3, o.other);
    case FETCH_NULL:
        return gshmem_uint64_atomic_fetch_add_nbi(o.null, word, 1, o.other);
    case QUIET_NULL:
        return gshmem_pe_quiet((const int *)o.null, 2);
    case QUIET_CTX:
        return gshmem_ctx_quiet(GSHMEM_CTX_INVALID);
    case INDEXED_PES: {
        const size_t index = 1;
        return gshmem_uint64_ixput_pes(word, own, &index, (const int *)o.null, 1);
    }
    case INDEXED_ROUND: { /* times 8, it is 1 */
        const size_t index = SIZE_MAX / 8 + 2;
        return gshmem_uint64_ixput(word, own, &index, 1, o.other);
    }
    case INDEXED_BEFORE: {
        const size_t index = (size_t)-1;
        return gshmem_uint64_ix_add(word + 4, own, &index, 1, o.other);
    }
    case FENCE_CTX:
        return gshmem_ctx_fence(GSHMEM_CTX_INVALID);
    case VALUES_NULL:
        return gshmem_uint64_wait_until_all_vector(word, 2, NULL, GSHMEM_CMP_NE, NULL);
    default:
        return gshmem_pe_quiet(&o.none, 1);
    }
}

/* All threads are told. */
__device__ gshmem_status_t together(enum mistake mistake, struct objects o)
{
    if (mistake == BLOCK_OWN) {
        gshmem_status_t status = gshmem_putmem_block(o.own, o.word, 24, o.other);
        return __syncthreads_and(status == GSHMEM_ERR_NOT_SYMMETRIC) ? status : GSHMEM_OK;
    }
    gshmem_status_t status = gshmem_putmem_nbi_warp(o.word, o.own, 8, o.none);
    return __all_sync(0xffffffff, status == GSHMEM_ERR_ARGUMENT) ? status : GSHMEM_OK;
}

/* What returns a value gives 0 when the policy lets it return. */
__device__ uint64_t value(enum mistake mistake, struct objects o)
{
    uint64_t *word = (uint64_t *)o.word;

    switch (mistake) {
    case G_OWN:
        return gshmem_uint64_g((const uint64_t *)o.own, o.other);
    case G_PE:
        return gshmem_uint64_g(word, o.none);
    case FLAG_WAIT_CMP:
        return gshmem_signal_wait_until(word, -1, 1);
    case ANY_CMP: /* of none: SIZE_MAX */
        return gshmem_uint64_wait_until_any(word, 2, NULL, 9, 1) + 1;
    case SOME_NULL:
        return gshmem_uint64_wait_until_some(word, 2, NULL, NULL, GSHMEM_CMP_NE, 1);
    case TEST_ODD:
        return (uint64_t)gshmem_uint64_test((uint64_t *)(o.word + 4), GSHMEM_CMP_NE, 1);
    case TESTS_CMP:
        return (uint64_t)gshmem_uint64_test_all(word, 2, NULL, 9, 1);
    case TESTS_NULL:
        return gshmem_uint64_test_any(NULL, 2, NULL, GSHMEM_CMP_NE, 1) + 1;
    default:
        return gshmem_uint64_atomic_fetch_add(word, 1, o.none);
    }
}

__global__ void make(enum mistake mistake, struct objects o, gshmem_status_t expected,
                     bool returns_value, struct found *found)
{
    gshmem_status_t status = GSHMEM_OK;

    if (mistake == BLOCK_OWN || mistake == WARP_PE)
        status = together(mistake, o);
    else if (threadIdx.x > 0)
        status = expected;
    else if (returns_value)
        EXPECT(found, value(mistake, o), 0);
    else
        status = alone(mistake, o);
    EXPECT(found, status, expected);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK); /* was answered at once, and did not happen */
}

/* Afterwards all is as before. */
__global__ void make_none(struct objects o, struct found *found)
{
    EXPECT(found, gshmem_putmem(o.word, o.word + 8, 8, o.other), GSHMEM_OK);
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

static const struct {
    const char *name;
    enum mistake mistake;
    gshmem_status_t status;
} mistakes[] = {
    {"put_pe", PUT_PE, GSHMEM_ERR_ARGUMENT},
    {"get_pe", GET_PE, GSHMEM_ERR_ARGUMENT},
    {"nbi_pe", NBI_PE, GSHMEM_ERR_ARGUMENT},
    {"put_own", PUT_OWN, GSHMEM_ERR_NOT_SYMMETRIC},
    {"get_past", GET_PAST, GSHMEM_ERR_NOT_SYMMETRIC},
    {"get_own", GET_OWN, GSHMEM_ERR_NOT_SYMMETRIC},
    {"put_end", PUT_END, GSHMEM_ERR_NOT_SYMMETRIC},
    {"get_end", GET_END, GSHMEM_ERR_NOT_SYMMETRIC},
    {"flag_own", FLAG_OWN, GSHMEM_ERR_NOT_SYMMETRIC},
    {"flag_op", FLAG_OP, GSHMEM_ERR_ARGUMENT},
    {"flag_odd", FLAG_ODD, GSHMEM_ERR_ARGUMENT},
    {"flag_pe", FLAG_PE, GSHMEM_ERR_ARGUMENT},
    {"p_pe", P_PE, GSHMEM_ERR_ARGUMENT},
    {"p_own", P_OWN, GSHMEM_ERR_NOT_SYMMETRIC},
    {"atomic_own", ATOMIC_OWN, GSHMEM_ERR_NOT_SYMMETRIC},
    {"atomic_odd", ATOMIC_ODD, GSHMEM_ERR_ARGUMENT},
    {"no_ctx", NO_CTX, GSHMEM_ERR_ARGUMENT},
    {"block_own", BLOCK_OWN, GSHMEM_ERR_NOT_SYMMETRIC},
    {"warp_pe", WARP_PE, GSHMEM_ERR_ARGUMENT},
    {"g_own", G_OWN, GSHMEM_OK},
    {"g_pe", G_PE, GSHMEM_OK},
    {"fetch_pe", FETCH_PE, GSHMEM_OK},
    {"quiet_pe", QUIET_PE, GSHMEM_ERR_ARGUMENT},
    {"wait_cmp", WAIT_CMP, GSHMEM_ERR_ARGUMENT},
    {"wait_null", WAIT_NULL, GSHMEM_ERR_ARGUMENT},
    {"all_odd", ALL_ODD, GSHMEM_ERR_ARGUMENT},
    {"values_null", VALUES_NULL, GSHMEM_ERR_ARGUMENT},
    {"nothing", NOTHING, GSHMEM_ERR_ARGUMENT},
    {"put_null", PUT_NULL, GSHMEM_ERR_ARGUMENT},
    {"get_null", GET_NULL, GSHMEM_ERR_ARGUMENT},
    {"nbi_null", NBI_NULL, GSHMEM_ERR_ARGUMENT},
    {"flag_null", FLAG_NULL, GSHMEM_ERR_ARGUMENT},
    {"strided_null", STRIDED_NULL, GSHMEM_ERR_ARGUMENT},
    {"fetch_null", FETCH_NULL, GSHMEM_ERR_ARGUMENT},
    {"quiet_null", QUIET_NULL, GSHMEM_ERR_ARGUMENT},
    {"quiet_ctx", QUIET_CTX, GSHMEM_ERR_ARGUMENT},
    {"fence_ctx", FENCE_CTX, GSHMEM_ERR_ARGUMENT},
    {"indexed_pes", INDEXED_PES, GSHMEM_ERR_ARGUMENT},
    {"indexed_round", INDEXED_ROUND, GSHMEM_ERR_NOT_SYMMETRIC},
    {"indexed_before", INDEXED_BEFORE, GSHMEM_ERR_NOT_SYMMETRIC},
    {"flag_wait_cmp", FLAG_WAIT_CMP, GSHMEM_OK},
    {"any_cmp", ANY_CMP, GSHMEM_OK},
    {"some_null", SOME_NULL, GSHMEM_OK},
    {"test_odd", TEST_ODD, GSHMEM_OK},
    {"tests_cmp", TESTS_CMP, GSHMEM_OK},
    {"tests_null", TESTS_NULL, GSHMEM_OK},
};

int main(int argc, char **argv)
{
    CHECK_OK(gshmem_init());
    struct found *found = shared_array<struct found>(1);
    struct objects o = {symmetric_array<char>(64), shared_array<char>(64), (size_t)1 << 40,
                        gshmem_n_pes() + 4, 0, NULL};
    bool known = false;

    set_bytes(o.word, 0x11, 64);
    memset(o.own, 0x22, 64);
    CHECK_OK(gshmem_barrier_all());
    for (const auto &m : mistakes) {
        if (argc != 2 || strcmp(argv[1], m.name) != 0)
            continue;
        known = true;
        if (gshmem_my_pe() == gshmem_n_pes() - 1)
            make<<<1, 32>>>(m.mistake, o, m.status, !m.status, found);
        CHECK_FOUND(found);
    }
    if (!known)
        CHECK_FAIL("usage: errors MISTAKE");
    CHECK_OK(gshmem_barrier_all());
    char word[64];
    copy_out(word, o.word, sizeof word);
    for (int i = 0; i < 64; i++) {
        CHECK_EQ(word[i], 0x11);
        CHECK_EQ(o.own[i], 0x22);
    }
    CHECK_OK(gshmem_barrier_all());
    make_none<<<1, 1>>>(o, found);
    CHECK_FOUND(found);
    CHECK_OK(gshmem_free(o.word));
    CHECK_CUDA(cudaFree(o.own));
    CHECK_CUDA(cudaFree(found));
    CHECK_OK(gshmem_finalize());
    return 0;
}
