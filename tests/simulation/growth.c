#define _GNU_SOURCE
#include "growth.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fiber.h"
#include "gshmem.h"
#include "network.h"
#include "record.h"
#include "runtime/base/clock.h"

enum { REPEATS = 4, PHASES_MOST = 24 };

static struct {
    bool alltoall;
    int ended;
    int arrived[PHASES_MOST];
    struct phase {
        const char *name;
        int times;
        uint64_t began, took, messages, bytes, connections, resident;
    } phase[PHASES_MOST];
} growth;

static uint64_t resident_bytes(void)
{
    unsigned long long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t sent_so_far(bool messages)
{
    uint64_t n = 0;

    for (int i = 0; i < world.n_pes; i++)
        n += messages ? world.pe[i].messages : world.pe[i].bytes;
    return n;
}

/* All PEs meet, by no means of the library, and long enough for what it has put off; the last to
 * come takes stock. */
static void growth_meet(int i, const char *name, int times)
{
    struct phase *p = &growth.phase[i];
    const uint64_t now = fiber_time();

    if (i && now - growth.phase[i - 1].began > growth.phase[i - 1].took)
        growth.phase[i - 1].took = now - growth.phase[i - 1].began;
    clock_sleep(20 * MS);
    if (++growth.arrived[i] == world.n_pes) {
        *p = (struct phase){.name = name,
                            .times = times,
                            .messages = sent_so_far(true),
                            .bytes = sent_so_far(false),
                            .connections = network_connections(),
                            .resident = resident_bytes()};
        p->began = fiber_time() + 20 * MS;
    }
    while (growth.arrived[i] < world.n_pes)
        clock_sleep(MS);
    clock_sleep(p->began - fiber_time());
}

static void growth_must(gshmem_status_t status, const char *call)
{
    if (status)
        world_fail("PE %d: %s: %s", gshmem_my_pe(), call, gshmem_status_name(status));
}

#define MUST(call) growth_must(call, #call)

static void *growth_main(void *argument)
{
    uint64_t *to, *from;
    gshmem_team_t team;
    int i = 0;

    (void)argument;
    growth_meet(i++, "start-up", 1);
    MUST(gshmem_init());
    growth_meet(i++, "allocation", 1);
    to = gshmem_calloc(2 * (size_t)world.n_pes, sizeof *to);
    from = to + world.n_pes;
    growth_meet(i++, "barrier, first", 1);
    MUST(gshmem_barrier_all());
    growth_meet(i++, "barrier", REPEATS);
    for (int k = 0; k < REPEATS; k++)
        MUST(gshmem_barrier_all());
    growth_meet(i++, "allreduce, 8 B", REPEATS);
    for (int k = 0; k < REPEATS; k++)
        MUST(gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_UINT64, GSHMEM_OP_SUM, to, from, 1));
    growth_meet(i++, "broadcast, 8 B", REPEATS);
    for (int k = 0; k < REPEATS; k++)
        MUST(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, to, from, 8, 0));
    growth_meet(i++, "team of all", 1);
    MUST(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, world.n_pes, NULL, 0, &team));
    growth_meet(i++, "team's end", 1);
    MUST(gshmem_team_destroy(team));
    if (growth.alltoall) {
        growth_meet(i++, "alltoall, first", 1);
        MUST(gshmem_alltoallmem(GSHMEM_TEAM_WORLD, to, from, 8));
        growth_meet(i++, "alltoall, 8 B", REPEATS);
        for (int k = 0; k < REPEATS; k++)
            MUST(gshmem_alltoallmem(GSHMEM_TEAM_WORLD, to, from, 8));
    }
    growth_meet(i++, "end", 1);
    MUST(gshmem_finalize());
    growth_meet(i++, NULL, 1);
    growth.ended++;
    return NULL;
}

void growth_begin(bool alltoall)
{
    growth.alltoall = alltoall;
    weather = (struct weather){.latency_ns = 10 * US, .byte_ps = 80, .capacity = 1 << 18};
    world.pace = (struct pace){.call_ns = 300, .pause_ns = 40, .yield_ns = 1000, .wake_ns = 4000};
    for (int i = 0; i < world.n_pes; i++)
        fiber_new(&world.pe[i], 0, growth_main, NULL);
}

bool growth_has_ended(void)
{
    return growth.ended == world.n_pes;
}

void growth_print(void)
{
    for (int i = 0; growth.phase[i].name; i++) {
        const struct phase *p = &growth.phase[i], *next = p + 1;
        const double calls = (double)p->times * world.n_pes;
        printf("%d;%s;%.2f;%.1f;%.3f;%.2f;%.1f\n", world.n_pes, p->name,
               (double)(next->messages - p->messages) / calls,
               (double)(next->bytes - p->bytes) / calls, (double)p->took / 1000 / p->times,
               (double)(next->connections - p->connections) / world.n_pes,
               (double)next->resident / 1024 / world.n_pes);
    }
}
