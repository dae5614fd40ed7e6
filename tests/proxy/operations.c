/* Every kind of command, to every PE, in a job: as a kernel would write them, checked at both ends.
 */
#include <stdint.h>

#include "kernel.h"

enum { WORDS = 4096, BIG = (3 << 20) + 5 }; /* more than is copied in one turn */

static uint64_t *words, *flag;
static unsigned char *big;
static uint32_t *half;

static const struct gshmem_device_channel *channel(void)
{
    return &state.ctx.channel[0];
}

static uint32_t tags = 0;

/* Sends it, asks for an answer, and returns the status. */
static int ask(struct gshmem_command *c, uint32_t n, uint64_t value[2])
{
    tags = (tags + 1) % 256;
    c[0].responds = 1;
    c[0].response = tags * 3 % GSHMEM_RESPONSES;
    c[0].tag = tags;
    issue(channel(), c, n);
    return wait_answer(state.ctx.job, c[0].response, tags, value);
}

static struct gshmem_command command(uint32_t kind, int pe, const void *address)
{
    return (struct gshmem_command){
        .kind = kind, .pe = (uint32_t)state.ctx.world[pe], .address = (uintptr_t)address};
}

static uint64_t fetch(int pe, const void *address, uint32_t bytes)
{
    struct gshmem_command c = command(GSHMEM_COMMAND_FETCH, pe, address);
    uint64_t value[2];

    c.type = bytes;
    CHECK_EQ(ask(&c, 1, value), GSHMEM_OK);
    return value[0];
}

static void test_values(int pe)
{
    struct gshmem_command c = command(GSHMEM_COMMAND_VALUE, pe, &words[1]);

    c.type = 8;
    c.local = 0xfedcba9876543210; /* with its top bit */
    CHECK_EQ(ask(&c, 1, NULL), GSHMEM_OK);
    CHECK_EQ(fetch(pe, &words[1], 8), 0xfedcba9876543210);
    c.type = 2;
    c.local = 0x1234;
    CHECK_EQ(ask(&c, 1, NULL), GSHMEM_OK);
    CHECK_EQ(fetch(pe, &words[1], 8), 0xfedcba9876541234);
    CHECK_EQ(fetch(pe, &words[1], 1), 0x34);
    c.type = 16;
    c.local = 1;
    c.size = UINT64_C(2) << 62;
    CHECK_EQ(ask(&c, 1, NULL), GSHMEM_OK);
    CHECK_EQ(fetch(pe, &words[2], 8), UINT64_C(2) << 62);
}

static void test_copies(int pe)
{
    static unsigned char out[BIG], in[BIG];
    struct gshmem_command c = command(GSHMEM_COMMAND_PUT, pe, big);

    for (size_t i = 0; i < BIG; i++)
        out[i] = (unsigned char)(i * 7 + i / 251 + (size_t)pe + (size_t)gshmem_my_pe());
    c.local = (uintptr_t)out;
    c.size = BIG;
    CHECK(!wait_done(channel(), issue(channel(), &c, 1)));
    c = command(GSHMEM_COMMAND_GET, pe, big);
    c.local = (uintptr_t)in;
    c.size = BIG;
    CHECK(!wait_done(channel(), issue(channel(), &c, 1)));
    CHECK(memcmp(out, in, BIG) == 0);
}

static void test_atomics(int pe)
{
    struct gshmem_command c[2];
    uint64_t value[2], result = 0;

    c[0] = command(GSHMEM_COMMAND_ATOMIC, pe, &words[8]);
    c[0].amo = GSHMEM_AMO_SWAP;
    c[0].type = GSHMEM_TYPE_UINT64;
    c[0].local = 100;
    CHECK_EQ(ask(c, 1, NULL), GSHMEM_OK);
    c[0].amo = GSHMEM_AMO_ADD;
    c[0].local = 5;
    CHECK_EQ(ask(c, 1, value), GSHMEM_OK);
    CHECK_EQ(value[0], 100);

    c[0].amo = GSHMEM_AMO_COMPARE_SWAP;
    c[0].local = 7;
    c[0].size = 105;
    c[0].more = 1;
    c[0].responds = 0;
    c[1] = command(GSHMEM_COMMAND_RESULT, pe, NULL);
    c[1].local = (uintptr_t)&result;
    CHECK(!wait_done(channel(), issue(channel(), c, 2)));
    CHECK_EQ(result, 105);
    CHECK_EQ(fetch(pe, &words[8], 8), 7);
    c[0].local = 9; /* it finds something else, and leaves it */
    CHECK(!wait_done(channel(), issue(channel(), c, 2)));
    CHECK_EQ(result, 7);
    CHECK_EQ(fetch(pe, &words[8], 8), 7);
}

/* A signal with no data before it. */
static void test_lone_signal(int pe)
{
    struct gshmem_command c = command(GSHMEM_COMMAND_SIGNAL, pe, &words[9]);

    c.amo = GSHMEM_SIGNAL_SET;
    c.local = 40;
    CHECK_EQ(ask(&c, 1, NULL), GSHMEM_OK);
    c.amo = GSHMEM_SIGNAL_ADD;
    c.local = 2;
    CHECK_EQ(ask(&c, 1, NULL), GSHMEM_OK);
    CHECK_EQ(fetch(pe, &words[9], 8), 42);
}

/* To every PE at once; each gets a signal from all. */
static void test_signals(int n_pes, uint64_t high)
{
    uint64_t source[8];
    struct gshmem_command c[2];
    uint64_t last = 0;

    for (int pe = 0; pe < n_pes; pe++) {
        for (int i = 0; i < 8; i++)
            source[i] = (uint64_t)(gshmem_my_pe() * 1000 + i);
        c[0] = command(GSHMEM_COMMAND_PUT, pe, &words[64 + 8 * gshmem_my_pe()]);
        c[0].local = (uintptr_t)source;
        c[0].size = sizeof source;
        c[1] = command(GSHMEM_COMMAND_SIGNAL, pe, flag);
        c[1].amo = GSHMEM_SIGNAL_ADD;
        c[1].local = 1 + high; /* with `high` it takes two slots */
        last = issue_pair(channel(), c);
        /* what the proxy has taken, it has copied */
        while (gshmem_load_acquire(channel()->ring.tail) < last)
            gshmem_device_help();
        memset(source, 0xff, sizeof source);
    }
    CHECK(!wait_done(channel(), last));
    CHECK_OK(gshmem_uint64_wait_until(flag, GSHMEM_CMP_EQ, (uint64_t)n_pes * (1 + high)));
    for (int pe = 0; pe < n_pes; pe++) {
        for (int i = 0; i < 8; i++)
            CHECK_EQ(words[64 + 8 * pe + i], pe * 1000 + i);
    }
}

int main(void)
{
    gshmem_device_register(&module);
    CHECK_EQ(state.ctx.n_pes, 0);
    CHECK_OK(gshmem_init());
    int n_pes = gshmem_n_pes();
    CHECK_EQ(state.ctx.n_pes, n_pes);
    CHECK_EQ(state.ctx.my_pe, gshmem_my_pe());

    words = gshmem_calloc(WORDS, sizeof *words);
    flag = gshmem_calloc(1, sizeof *flag);
    half = gshmem_calloc(2, sizeof *half);
    big = gshmem_malloc(BIG);
    for (int pe = 0; pe < n_pes; pe++) {
        if ((pe + gshmem_my_pe()) % n_pes == 0 || n_pes == 1) {
            test_values(pe);
            test_copies(pe);
            test_atomics(pe);
            test_lone_signal(pe);
        }
        CHECK_OK(gshmem_barrier_all());
    }
    test_signals(n_pes, 0);
    CHECK_OK(gshmem_barrier_all());
    *flag = 0;
    CHECK_OK(gshmem_barrier_all());
    test_signals(n_pes, UINT64_C(1) << 32);
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(state.ctx.n_pes, 0);

    /* and again */
    CHECK_OK(gshmem_init());
    CHECK_EQ(state.ctx.n_pes, n_pes);
    CHECK_OK(gshmem_finalize());
    gshmem_device_unregister(&module);
    return 0;
}
