/* How fast the proxies of a PE carry out what is in its channels, while no kernel runs: for
 * GSHMEM_PROXIES. PE 0 fills the channels of many contexts with puts; the first slot of each
 * is written last, and until then a proxy takes nothing. Prints the best round and the median one,
 * and what the proxies took of CPUs in the median round. prefilled-nic does not count their spins in
 * that: so it says what several proxies cost each other, also where other processes have the CPUs.
 *
 *     GSHMEM_MAPPED=0 GSHMEM_PROXIES=2 gshmemrun -n 2 prefilled [BYTES [ROUNDS]]
 *     GSHMEM_PROXIES=2 GSHMEM_PROXY_CPU=0 prefilled-nic [BYTES [ROUNDS]]     over the tests' NIC
 *
 * With --hosts 2 the proxies of PE 1 need CPUs, too. */
#include <stdlib.h>
#include <time.h>

#include "../proxy/kernel.h"
#include "prefilled.h"

enum {
    CONTEXTS = 32,
    COMMANDS = 1000, /* of 1024 slots */
    BYTES_MOST = PREFILLED_SPACE / CONTEXTS
};

static struct filled {
    const struct gshmem_device_channel *channel;
    struct gshmem_command put; /* to a place of its own */
    uint64_t first; /* the position that is written last */
} filled[CONTEXTS];

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_a_little(void)
{
    const struct timespec t = {.tv_nsec = 20 * 1000};

    nanosleep(&t, NULL);
}

static void fill(struct filled *f)
{
    const struct gshmem_channel *c = &f->channel->ring;

    f->first = gshmem_channel_take(c, COMMANDS);
    for (uint64_t i = 1; i < COMMANDS; i++) {
        CHECK(gshmem_channel_has_room(c, f->first + i + 1));
        gshmem_channel_write(c, f->first + i, gshmem_command_encode(&f->put), 1);
    }
}

static bool is_done(const struct filled *f)
{
    return (gshmem_load_acquire(f->channel->done) & ~GSHMEM_DONE_FAILED) >= f->first + COMMANDS;
}

static double round_seconds(double *cpu)
{
    for (int i = 0; i < CONTEXTS; i++)
        fill(&filled[i]);
    const double begun = seconds(), used = target_cpu_seconds();
    for (int i = 0; i < CONTEXTS; i++)
        gshmem_channel_write(&filled[i].channel->ring, filled[i].first,
                             gshmem_command_encode(&filled[i].put), 1);
    for (int i = 0; i < CONTEXTS; i++) {
        while (!is_done(&filled[i]))
            pause_a_little();
    }
    *cpu = target_cpu_seconds() - used;
    return seconds() - begun;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 8;
    const int rounds = argc > 2 ? atoi(argv[2]) : 50;
    double *took = calloc((size_t)rounds, sizeof *took), *cpu = calloc((size_t)rounds, sizeof *cpu);
    gshmem_ctx_t ctx[CONTEXTS];

    CHECK_EQ(setenv("GSHMEM_PROXY_IDLE_US", "1000000", 1), 0); /* they are awake when it begins */
    target_open();
    gshmem_device_register(&module);
    CHECK_OK(gshmem_init());
    CHECK(bytes && bytes <= BYTES_MOST && rounds > 0 && took && cpu);
    char *heap = gshmem_malloc(CONTEXTS * BYTES_MOST);
    CHECK(heap);
    memset(heap, gshmem_my_pe() == 0 ? 1 : 0, CONTEXTS * BYTES_MOST);
    for (int i = 0; i < CONTEXTS; i++) {
        CHECK_OK(gshmem_ctx_create(0, &ctx[i]));
        filled[i].channel = ctx[i]->device->channel;
    }
    target_begin();
    for (int i = 0; i < CONTEXTS; i++) {
        const uint32_t pe = (uint32_t)target_of(filled[i].channel);
        const uintptr_t at = (uintptr_t)heap + (size_t)i * BYTES_MOST;
        filled[i].put = bytes == 8 ? (struct gshmem_command){.kind = GSHMEM_COMMAND_VALUE,
                                                             .type = 8,
                                                             .pe = pe,
                                                             .address = at,
                                                             .local = 7}
                                   : (struct gshmem_command){.kind = GSHMEM_COMMAND_PUT,
                                                             .pe = pe,
                                                             .address = at,
                                                             .local = at,
                                                             .size = bytes};
    }
    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < rounds && gshmem_my_pe() == 0; i++)
        took[i] = round_seconds(&cpu[i]);
    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < CONTEXTS; i++) {
        const char *got = target_memory((int)filled[i].put.pe, filled[i].put.address);
        CHECK(!got || *got == (bytes == 8 ? 7 : 1));
    }
    if (gshmem_my_pe() == 0) {
        qsort(took, (size_t)rounds, sizeof *took, by_size);
        qsort(cpu, (size_t)rounds, sizeof *cpu, by_size);
        printf("%zu B: %.2f million puts a second, in the median round %.2f; %.1f ns of CPUs a put\n",
               bytes, 1e-6 * CONTEXTS * COMMANDS / took[0],
               1e-6 * CONTEXTS * COMMANDS / took[rounds / 2],
               1e9 * cpu[rounds / 2] / (CONTEXTS * COMMANDS));
    }
    free(took);
    free(cpu);
    target_end(); /* with the contexts and the heap */
    return 0;
}
