/* Message passing: data, then an ordering call, then a flag; who sees the flag sees the data.
 *
 * On x86 stores are seen in the order they were made, so a missing fence cannot show here for
 * mapped peers; the compiler's reordering, a transport's and other processors' can. */
#include "pe.h"

enum { WORDS = 9 };

enum order { FENCE, QUIET, PE_QUIET, CTX_FENCE, CTX_QUIET, CTX_PE_QUIET, ORDERS };

static uint64_t data[WORDS], flag, credit;
static gshmem_ctx_t ctx;
static uint64_t rounds;

static void separate(enum order order, int pe)
{
    switch (order) {
    case FENCE:
        CHECK_OK(gshmem_fence());
        break;
    case QUIET:
        CHECK_OK(gshmem_quiet());
        break;
    case PE_QUIET:
        CHECK_OK(gshmem_pe_quiet(&pe, 1));
        break;
    case CTX_FENCE:
        CHECK_OK(gshmem_ctx_fence(ctx));
        break;
    case CTX_QUIET:
        CHECK_OK(gshmem_ctx_quiet(ctx));
        break;
    default:
        CHECK_OK(gshmem_ctx_pe_quiet(ctx, &pe, 1));
    }
}

/* Each PE tells its right neighbour. */
static void test_neighbours(enum order order)
{
    gshmem_ctx_t with = order >= CTX_FENCE ? ctx : GSHMEM_CTX_DEFAULT;

    memset(data, 0, sizeof data);
    flag = credit = 0;
    barrier();
    for (uint64_t i = 1; i <= rounds; i++) {
        uint64_t source[WORDS];
        for (int w = 0; w < WORDS; w++)
            source[w] = i * 100 + (uint64_t)w;
        CHECK_EQ(gshmem_signal_wait_until(&credit, GSHMEM_CMP_EQ, i - 1), i - 1);
        if (i % 2)
            CHECK_OK(gshmem_ctx_putmem(with, data, source, sizeof data, right()));
        else
            CHECK_OK(gshmem_ctx_putmem_nbi(with, data, source, sizeof data, right()));
        separate(order, right());
        CHECK_OK(gshmem_ctx_putmem(with, &flag, &i, sizeof flag, right()));

        CHECK_EQ(gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, i), i);
        for (int w = 0; w < WORDS; w++)
            CHECK_EQ(data[w], i * 100 + (uint64_t)w);
        CHECK_OK(gshmem_ctx_quiet(with)); /* source goes out of scope */
        CHECK_OK(gshmem_putmem(&credit, &i, sizeof credit, left()));
    }
    barrier();
}

/* A writes to B and tells C after a quiet; C asks B and must find it there. */
static void test_third(void)
{
    int second = right(), third = (me + 2) % n;
    int first = (me + n - 2) % n;

    memset(data, 0, sizeof data);
    flag = credit = 0;
    barrier();
    for (uint64_t i = 1; i <= rounds; i++) {
        uint64_t source[WORDS], got[WORDS];
        for (int w = 0; w < WORDS; w++)
            source[w] = i * 100 + (uint64_t)me;
        CHECK_EQ(gshmem_signal_wait_until(&credit, GSHMEM_CMP_EQ, i - 1), i - 1);
        CHECK_OK(gshmem_putmem_nbi(data, source, sizeof data, second));
        CHECK_OK(gshmem_quiet());
        CHECK_OK(gshmem_putmem(&flag, &i, sizeof flag, third));

        CHECK_EQ(gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, i), i);
        CHECK_OK(gshmem_getmem(got, data, sizeof got, (first + 1) % n));
        for (int w = 0; w < WORDS; w++)
            CHECK_EQ(got[w], i * 100 + (uint64_t)first);
        CHECK_OK(gshmem_putmem(&credit, &i, sizeof credit, first));
    }
    barrier();
}

static void test_pe_quiet_list(void)
{
    int pes[64];
    uint64_t value = 7;

    for (int pe = 0; pe < n; pe++)
        pes[pe] = pe;
    CHECK_OK(gshmem_putmem_nbi(&flag, &value, sizeof flag, right()));
    CHECK_OK(gshmem_pe_quiet(pes, (size_t)n));
    CHECK_OK(gshmem_pe_quiet(NULL, 0));
    CHECK_OK(gshmem_ctx_pe_quiet(ctx, pes, 1));
    barrier();
}

/* A barrier completes what came before it: data of a get that is under way is there after it. */
static void test_barrier_completes(void)
{
    enum { BYTES = 1 << 20, ROUNDS = 10 };
    unsigned char *there = gshmem_malloc(BYTES), *here = malloc(BYTES);

    CHECK(there && here);
    for (int round = 1; round <= ROUNDS; round++) {
        memset(there, round, BYTES);
        memset(here, 0, BYTES);
        barrier();
        CHECK_OK(gshmem_getmem_nbi(here, there, BYTES, right()));
        CHECK_OK(gshmem_barrier_all());
        CHECK_EQ(here[0], round);
        CHECK_EQ(here[BYTES - 1], round);
    }
    free(here);
    CHECK_OK(gshmem_free(there));
}

int main(void)
{
    begin();
    rounds = (uint64_t)how_often(1500, 300);
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    for (int order = 0; order < ORDERS; order++)
        test_neighbours((enum order)order);
    test_third();
    test_pe_quiet_list();
    test_barrier_completes();
    CHECK_OK(gshmem_ctx_destroy(ctx));
    end();
    return 0;
}
