/* One run of the simulation: see README.md. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "fence.h"
#include "fiber.h"
#include "growth.h"
#include "image.h"
#include "network.h"
#include "nth.h"
#include "plan.h"
#include "program.h"
#include "record.h"

enum {
    RUN_SECONDS = 600, /* of virtual time: a run that takes longer waits without end */
    AFTER_SECONDS = 100, /* the same, counted from the first fault that PEs cannot survive, */
    NTH_SECONDS = 45,    /* or from the first call that fails: longer than all time-outs */
};

static void usage(void)
{
    fputs("usage: simulation --seed N [--pes N] [--steps LIST] [--faults LIST] [--log FILE] "
          "[--describe] [--plan] [--fail PE[:CALL:N[+]]]\n"
          "       simulation --growth [--alltoall] --pes N\n",
          stderr);
    exit(2);
}

static void describe(void)
{
    printf("seed %llu: %d PEs, %d on a node, %d steps%s%s%s, GSHMEM_PEER_TIMEOUT=%d, begun by %s\n",
           (unsigned long long)world.seed, world.n_pes, plan.pes_of_node, plan.steps,
           plan.wide ? ", wide" : "", plan.kernels ? ", with kernels" : "",
           plan.gpu ? ", on GPUs" : "", plan.peer_timeout,
           plan.uid ? "a unique id" : "a launcher");
    if (world.first_count)
        printf("counters of 32 bits begin at %#x\n", world.first_count);
    for (int i = 0; i < plan.faults; i++) {
        const struct fault *f = &plan.fault[i];
        printf("fault %d%s: %s of PE %d, %llu us after step %d, for %llu us\n", i,
               plan.happens[i] ? "" : " (left out)", fault_name(f->kind), f->pe,
               (unsigned long long)(f->delay / US), f->step, (unsigned long long)(f->lasts / US));
    }
}

static void wide_settings(void)
{
    static const struct {
        const char *name, *value[4];
    } some[] = {
        {"GSHMEM_MAPPED", {"on", "off", "on", "on"}},
        {"GSHMEM_CHECK", {"off", "off", "memory", "off"}},
        {"GSHMEM_HEAP_SIZE", {"1M", "16M", "4M", "1M"}},
        {"GSHMEM_HEAP_KEEP", {"64M", "0", "64M", "1M"}},
        {"GSHMEM_SPIN_US", {"auto", "0", "20", "auto"}},
        {"GSHMEM_CHANNELS", {"4", "1", "8", "2"}},
        {"GSHMEM_WATCHDOG", {"60", "1", "0", "60"}},
        {"GSHMEM_LOG", {"warn", "info", "warn", "debug"}},
        {"GSHMEM_STAGING", {"64K", "16M", "1M", "256K"}},
    };
    struct chance c = chance_begin(world.seed, 7000);

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        setenv(some[i].name, some[i].value[chance_below(&c, 4)], 1);
    setenv("GSHMEM_DEVICE", plan.gpu ? "cuda" : "auto", 1);
}

static void settings(void)
{
    char seconds[12];

    snprintf(seconds, sizeof seconds, "%d", plan.peer_timeout);
    setenv("GSHMEM_BOOTSTRAP", plan.uid ? "auto" : FENCE_MODULE, 1);
    setenv("GSHMEM_HEAP_MAX", "64M", 1);
    setenv("GSHMEM_ON_ERROR", "return", 1);
    setenv("GSHMEM_PEER_TIMEOUT", seconds, 1);
    setenv("GSHMEM_INIT_TIMEOUT", "30", 1);
    if (plan.wide)
        wide_settings();
}

static void make_pes(void)
{
    world.pe = calloc((size_t)world.n_pes, sizeof *world.pe);
    for (int i = 0; i < world.n_pes; i++) {
        struct chance c = chance_begin(world.seed, 3000 + (uint64_t)i);
        world.pe[i] = (struct pe){.number = i,
                                  .node = i / plan.pes_of_node,
                                  .image = image_new_process(),
                                  .random = chance_begin(world.seed, 4000 + (uint64_t)i),
                                  .clock_offset = SECOND + chance_below(&c, 1000000 * SECOND),
                                  .clock_ppm = chance_below(&c, 500)};
    }
}

static bool all_have_ended(void)
{
    for (int i = 0; i < world.n_pes; i++) {
        if (!programs[i].ended && !world.pe[i].dead)
            return false;
    }
    return true;
}

static void run_to_the_end(void)
{
    while (!world.over && !all_have_ended()) {
        const uint64_t after = judge.by_call ? NTH_SECONDS : AFTER_SECONDS;
        const uint64_t end = judge.allowed ? judge.since + after * SECOND : RUN_SECONDS * SECOND;
        if (world.now >= end) {
            programs_end();
            return;
        }
        fibers_run(world.now + 100 * MS);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},  {"pes", required_argument, NULL, 'p'},
        {"steps", required_argument, NULL, 't'}, {"faults", required_argument, NULL, 'f'},
        {"log", required_argument, NULL, 'l'},   {"describe", no_argument, NULL, 'd'},
        {"fail", required_argument, NULL, 'n'},
        {"plan", no_argument, NULL, 'P'},
        {"growth", no_argument, NULL, 'g'},     {"alltoall", no_argument, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };
    const char *steps = NULL, *faults = NULL, *log = NULL;
    int pes = 0;
    bool describes = false, plans = false, counts = false, grows = false, alltoall = false;
    char digest[65];

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            world.seed = strtoull(optarg, NULL, 0);
        else if (c == 'p')
            pes = atoi(optarg);
        else if (c == 't')
            steps = optarg;
        else if (c == 'f')
            faults = optarg;
        else if (c == 'l')
            log = optarg;
        else if (c == 'd')
            describes = true;
        else if (c == 'P')
            plans = true;
        else if (c == 'n' && nth_choose(optarg))
            counts = true;
        else if (c == 'g')
            grows = true;
        else if (c == 'a')
            alltoall = true;
        else
            usage();
    }
    plan_make(world.seed, pes, !counts && !grows); /* calls fail in narrow ones */
    plan.uid &= !grows;
    if (grows)
        plan.pes_of_node = 1;
    if ((steps && !plan_keep(steps, plan.step, STEPS_MOST)) ||
        (faults && !plan_keep(faults, plan.happens, FAULTS_MOST)) || !record_begin(log))
        usage();
    if (describes || plans)
        describe();
    if (plans)
        return 0;
    settings();
    image_begin();
    events_begin(world.seed);
    fibers_begin();
    network_begin(world.seed);
    make_pes();
    fence_begin(world.seed);
    if (grows) {
        growth_begin(alltoall);
        while (!world.over && !growth_has_ended())
            fibers_run(world.now + 100 * MS);
        growth_print();
    } else {
        programs_begin();
        run_to_the_end();
    }
    const uint64_t lines = record_end(digest);
    printf("seed %llu: %s; %d PEs, %llu events, %llu.%03llu s, SHA-256 %s\n",
           (unsigned long long)world.seed, world.failure[0] ? world.failure : "fine", world.n_pes,
           (unsigned long long)lines, (unsigned long long)(world.now / SECOND),
           (unsigned long long)(world.now / MS % 1000), digest);
    if (counts)
        nth_print();
    return world.failure[0] != 0;
}
