#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "fiber.h"
#include "gshmem.h"
#include "image.h"
#include "network.h"
#include "events.h"
#include "record.h"

static int done;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        const gshmem_status_t status_ = (call);                                                    \
        if (status_)                                                                               \
            world_fail("PE %d: %s: %s", gshmem_my_pe(), #call, gshmem_status_text(status_));       \
    } while (0)

static void *program(void *argument)
{
    struct pe *pe = argument;

    (void)pe;
    MUST(gshmem_init());
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    record("PE %d has begun", me);
    uint64_t *x = gshmem_malloc(sizeof *x * (size_t)n);
    for (uint64_t round = 1; round <= 3; round++) {
        uint64_t value = round * 1000 + (uint64_t)me;
        MUST(gshmem_putmem(&x[me], &value, sizeof value, (me + 1) % n));
        MUST(gshmem_quiet());
        MUST(gshmem_barrier(GSHMEM_TEAM_WORLD));
        const int from = (me + n - 1) % n;
        if (x[from] != round * 1000 + (uint64_t)from)
            world_fail("PE %d round %d: %d", me, (int)round, (int)x[from]);
        MUST(gshmem_barrier(GSHMEM_TEAM_WORLD));
        record("PE %d has done round %d", me, (int)round);
    }
    MUST(gshmem_finalize());
    record("PE %d has ended", me);
    if (++done == world.n_pes)
        world.over = true;
    return NULL;
}

int main(int argc, char **argv)
{
    char text[65];

    world.seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    world.n_pes = argc > 2 ? atoi(argv[2]) : 2;
    record_begin(argc > 3 ? argv[3] : NULL);
    setenv("GSHMEM_BOOTSTRAP", FENCE_MODULE, 1);
    setenv("GSHMEM_HEAP_MAX", "64M", 1);
    image_begin();
    events_begin(world.seed);
    fibers_begin();
    network_begin(world.seed);
    world.pace = (struct pace){.call_ns = 200, .pause_ns = 20, .yield_ns = 1000, .wake_ns = 3000};
    weather = (struct weather){.latency_ns = 10000, .jitter_ns = 5000, .byte_ps = 100,
        .capacity = 256 << 10};
    world.pe = calloc((size_t)world.n_pes, sizeof *world.pe);
    fence_begin(world.seed);
    for (int i = 0; i < world.n_pes; i++) {
        struct pe *pe = &world.pe[i];
        pe->number = i;
        pe->image = image_new_process();
        pe->random = chance_begin(world.seed, 1000 + (uint64_t)i);
        pe->clock_offset = 1000 * SECOND;
        fiber_new(pe, 0, program, pe);
    }
    fibers_run(100 * SECOND);
    if (!world.over)
        world_fail("not over");
    const uint64_t lines = record_end(text);
    printf("%s: %llu lines, %s\n", world.failure[0] ? world.failure : "fine", (unsigned long long)lines, text);
    return world.failure[0] != 0;
}
