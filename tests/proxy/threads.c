/* Many producers and the proxy itself: each operation happens once, its data is there when it is
 * done, and in the order of its channel. Under ThreadSanitizer a missing release or acquire on the
 * way is a reported race. */
#include <pthread.h>

#include "kernel.h"

enum { PRODUCERS = 4, ROUNDS = 1500, WORDS = 16 };

static uint64_t *counter, *mailbox, *flags;

/* What belongs to a producer: its channel is shared with others, its memory is not. */
static uint64_t *mail_of(int from, int who)
{
    return mailbox + (from * PRODUCERS + who) * WORDS;
}

static struct gshmem_command command(uint32_t kind, int pe, const void *address)
{
    return (struct gshmem_command){.kind = kind, .pe = (uint32_t)pe, .address = (uintptr_t)address};
}

/* Writes into its mailbox on the PE, and reads it back. */
static void put_and_get(const struct gshmem_device_channel *c, int pe, int who, uint64_t round)
{
    struct gshmem_command put = command(GSHMEM_COMMAND_PUT, pe, mail_of(gshmem_my_pe(), who));
    struct gshmem_command get = command(GSHMEM_COMMAND_GET, pe, mail_of(gshmem_my_pe(), who));
    uint64_t out[WORDS], in[WORDS] = {0};

    for (uint64_t i = 0; i < WORDS; i++)
        out[i] = round << 16 | i;
    put.local = (uintptr_t)out;
    get.local = (uintptr_t)in;
    put.size = get.size = sizeof out;
    issue(c, &put, 1);
    CHECK(!wait_done(c, issue(c, &get, 1)));
    CHECK(memcmp(in, out, sizeof in) == 0);
}

/* Its tag is the round's; the response belongs to this thread alone. */
static void fetch_add(const struct gshmem_device_channel *c, int pe, int who, uint64_t round)
{
    struct gshmem_command add = command(GSHMEM_COMMAND_ATOMIC, pe, counter);
    uint64_t value[2];
    static _Thread_local uint64_t last;

    add.amo = GSHMEM_AMO_ADD;
    add.type = GSHMEM_TYPE_UINT64;
    add.local = 1;
    add.responds = 1;
    add.response = (uint32_t)who * 100;
    add.tag = (round + 1) & 255;
    issue(c, &add, 1);
    CHECK_EQ(wait_answer(state.ctx.job, add.response, add.tag, value), GSHMEM_OK);
    CHECK(round == 0 || value[0] > last);
    last = value[0];
}

/* The last word of what is put, and the count behind it. */
static void put_signal(const struct gshmem_device_channel *c, int pe, int who, uint64_t round)
{
    struct gshmem_command pair[2] = {
        command(GSHMEM_COMMAND_VALUE, pe, mail_of(gshmem_my_pe(), who)),
        command(GSHMEM_COMMAND_SIGNAL, pe, &flags[gshmem_my_pe() * PRODUCERS + who]),
    };

    pair[0].type = 8;
    pair[0].local = round;
    pair[0].more = 1;
    pair[1].amo = GSHMEM_SIGNAL_ADD;
    pair[1].local = 1;
    issue(c, pair, 2);
}

static void *produce(void *argument)
{
    int who = (int)(intptr_t)argument, pe = (gshmem_my_pe() + 1) % gshmem_n_pes();
    const struct gshmem_device_channel *c =
        &state.ctx.channel[(uint32_t)who / 2 & (state.ctx.channels - 1)];

    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round % 3 == 0)
            put_and_get(c, pe, who, round);
        fetch_add(c, pe, who, round);
        put_signal(c, pe, who, round);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[PRODUCERS];

    gshmem_device_register(&module);
    CHECK_OK(gshmem_init());
    int n_pes = gshmem_n_pes(), before = (gshmem_my_pe() + n_pes - 1) % n_pes;
    counter = gshmem_calloc(1, sizeof *counter);
    mailbox = gshmem_calloc((size_t)n_pes * PRODUCERS * WORDS, sizeof *mailbox);
    flags = gshmem_calloc((size_t)n_pes * PRODUCERS, sizeof *flags);

    for (intptr_t i = 0; i < PRODUCERS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, produce, (void *)i), 0);
    for (int i = 0; i < PRODUCERS; i++) {
        uint64_t *flag = &flags[before * PRODUCERS + i];
        CHECK_OK(gshmem_uint64_wait_until(flag, GSHMEM_CMP_EQ, ROUNDS));
        /* the signal came after the value */
        CHECK_EQ(__atomic_load_n(mail_of(before, i), __ATOMIC_RELAXED), ROUNDS - 1);
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(thread[i], NULL);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(*counter, (uint64_t)PRODUCERS * ROUNDS);
    CHECK_OK(gshmem_finalize());
    return 0;
}
