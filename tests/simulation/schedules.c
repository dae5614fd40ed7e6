/* Explores all schedules of small programs: see README.md. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "events.h"
#include "explore.h"
#include "fence.h"
#include "fiber.h"
#include "image.h"
#include "machine.h"
#include "network.h"
#include "plan.h"
#include "program.h"
#include "record.h"
#include "small.h"

/* For nth.c: no call fails here. */
struct judge judge;

void program_allow_failures(enum fault_kind kind, struct pe *victim)
{
    (void)kind, (void)victim;
}

static void usage(void)
{
    fprintf(stderr,
            "usage: schedules-run [--kernels] [--preemptions N] [--plain] [--late] [--most EXECUTIONS] "
            "[--log FILE] "
            "PROGRAM…\nPROGRAM: what PE 0 does, a dot, what PE 1 does, as letters: %s; an x at "
            "the end: PE 1 dies at any time\n",
            small_letters);
    exit(2);
}

/* A job of two nodes whose network and whose system take the same time for each call. */
static void set_up(bool kernels)
{
    setenv("GSHMEM_BOOTSTRAP", FENCE_MODULE, 1);
    setenv("GSHMEM_HEAP_MAX", "16M", 1);
    setenv("GSHMEM_ON_ERROR", "return", 1);
    setenv("GSHMEM_PEER_TIMEOUT", "8", 1);
    setenv("GSHMEM_PROXY_IDLE_US", "0", 1); /* it sleeps as soon as it finds nothing */
    world.n_pes = 2;
    world.cpus = 2;
    world.pace = (struct pace){.call_ns = 300,
                               .pause_ns = 200,
                               .yield_ns = 50 * US,
                               .wake_ns = 2 * US,
                               .yields_count = true};
    weather = (struct weather){.latency_ns = 10 * US, .capacity = 1 << 20};
    machine_is_copied = true;
    if (!record_begin(NULL))
        usage();
    image_begin();
    events_begin(1);
    fibers_begin();
    world.schedule = (struct chance){.fixed = true};
    network_begin(1);
    world.pe = calloc(2, sizeof *world.pe);
    for (int i = 0; i < 2; i++)
        world.pe[i] = (struct pe){.number = i,
                                  .node = i,
                                  .image = image_new_process(),
                                  .random = chance_begin(1, (uint64_t)i),
                                  .clock_offset = SECOND};
    fence_begin(1);
    small_start(kernels);
    while (!world.over && !small_has_started() && world.now < 10 * SECOND)
        fibers_run(world.now + 100 * MS);
    fibers_run(world.now + 4 * SECOND); /* until nothing is left to do */
    fibers_spare(4);
    if (world.over || !small_has_started()) {
        fprintf(stderr, "schedules: the job does not start: %s\n", world.failure);
        exit(2);
    }
}

static bool explore_program(const char *program, struct exploration *what)
{
    struct explored e;
    struct timespec from, to;

    if (!small_choose(program))
        usage();
    what->victim = small_dies() ? 1 : -1;
    clock_gettime(CLOCK_MONOTONIC, &from);
    const bool good = explore(what, &e);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%-10s %8llu executions, %llu redundant, %llu states, %llu left out, %llu steps at most, "
           "%llu races, %llu timeouts, 10^%.0f interleavings, %.1f s%s%s%s\n",
           program, (unsigned long long)e.executions, (unsigned long long)e.redundant,
           (unsigned long long)e.states, (unsigned long long)e.refused,
           (unsigned long long)e.deepest, (unsigned long long)e.races, (unsigned long long)e.timeouts, e.plain,
           (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9,
           e.incomplete ? ", INCOMPLETE" : "", e.wide ? ", wide steps" : "",
           good ? "" : ", FAILED");
    if (!good || what->most == 1)
        printf("    %s\n    %s\n", e.failure, e.schedule);
    fflush(stdout);
    return good;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"preemptions", required_argument, NULL, 'p'}, {"plain", no_argument, NULL, 'a'},
        {"most", required_argument, NULL, 'm'},        {"log", required_argument, NULL, 'l'},
        {"kernels", no_argument, NULL, 'k'},           {"late", no_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    struct exploration what = {.begin = small_begin,
                               .check = small_check,
                               .ended = small_has_ended,
                               .preemptions = -1,
                               .reduces = true};
    bool good = true, kernels = false;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'p')
            what.preemptions = atoi(optarg);
        else if (c == 'a')
            what.reduces = false;
        else if (c == 'k')
            kernels = true;
        else if (c == 't')
            what.late = true;
        else if (c == 'm')
            what.most = strtoull(optarg, NULL, 10);
        else if (c == 'l')
            what.log = optarg;
        else
            usage();
    }
    if (optind == argc)
        usage();
    set_up(kernels);
    for (int i = optind; i < argc; i++)
        good &= explore_program(argv[i], &what);
    return !good;
}
