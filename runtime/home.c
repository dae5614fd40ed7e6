#define _GNU_SOURCE
#include "runtime/home.h"

#include <sched.h>
#include <stdbool.h>

#include "runtime/host.h"

enum {
    LOOK_LEAST_NS = 2 * 1000 * 1000,
    LOOK_MOST_NS = 256 * 1000 * 1000,
};

static _Thread_local struct {
    bool found;
    int cpu;
    uint64_t next;  /* ns, when to look again, */
    uint64_t pause; /* that long after the last time */
} home;

/* Not where it was told since to keep away from. */
static void go(const cpu_set_t *allowed)
{
    cpu_set_t one;

    if (!CPU_ISSET(home.cpu, allowed))
        return;
    CPU_ZERO(&one);
    CPU_SET(home.cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        sched_setaffinity(0, sizeof *allowed, allowed);
}

void home_find(const struct host *host, const struct bootstrap *b)
{
    cpu_set_t all;

    home.found = host->crowded && sched_getaffinity(0, sizeof all, &all) == 0;
    if (!home.found)
        return;
    int turn = host_turn(host, b, CPU_COUNT(&all)), cpu = 0;
    while (!CPU_ISSET(cpu, &all) || turn-- > 0)
        cpu++;
    home.cpu = cpu;
    home.next = 0;
    home.pause = LOOK_LEAST_NS;
    go(&all);
}

void home_return(uint64_t now)
{
    cpu_set_t all;

    if (!home.found || now < home.next)
        return;
    bool away = sched_getcpu() != home.cpu;
    if (away && home.pause < LOOK_MOST_NS)
        home.pause *= 2;
    else if (!away && home.pause > LOOK_LEAST_NS)
        home.pause /= 2;
    home.next = now + home.pause;
    if (away && sched_getaffinity(0, sizeof all, &all) == 0)
        go(&all);
}
