#define _GNU_SOURCE
#include "runtime/node/affinity.h"

#include <sched.h>
#include <stdbool.h>

#include "runtime/node/node.h"

enum {
    LOOK_LEAST_NS = 2 * 1000 * 1000,
    LOOK_MOST_NS = 256 * 1000 * 1000,
};

static _Thread_local struct {
    bool found;
    int cpu;
    uint64_t next;  /* ns, when to look again, */
    uint64_t pause; /* that long after the last time */
} cpu_of_pe;

/* Not where it was told since to keep away from. */
static void go(const cpu_set_t *allowed)
{
    cpu_set_t one;

    if (!CPU_ISSET(cpu_of_pe.cpu, allowed))
        return;
    CPU_ZERO(&one);
    CPU_SET(cpu_of_pe.cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
        sched_setaffinity(0, sizeof *allowed, allowed);
}

void affinity_begin(const struct node *node, const struct bootstrap *b)
{
    cpu_set_t all;

    cpu_of_pe.found = node->oversubscribed && sched_getaffinity(0, sizeof all, &all) == 0;
    if (!cpu_of_pe.found)
        return;
    int turn = node_turn(node, b, CPU_COUNT(&all)), cpu = 0;
    while (!CPU_ISSET(cpu, &all) || turn-- > 0)
        cpu++;
    cpu_of_pe.cpu = cpu;
    cpu_of_pe.next = 0;
    cpu_of_pe.pause = LOOK_LEAST_NS;
    go(&all);
}

void affinity_return(uint64_t now)
{
    cpu_set_t all;

    if (!cpu_of_pe.found || now < cpu_of_pe.next)
        return;
    bool away = sched_getcpu() != cpu_of_pe.cpu;
    if (away && cpu_of_pe.pause < LOOK_MOST_NS)
        cpu_of_pe.pause *= 2;
    else if (!away && cpu_of_pe.pause > LOOK_LEAST_NS)
        cpu_of_pe.pause /= 2;
    cpu_of_pe.next = now + cpu_of_pe.pause;
    if (away && sched_getaffinity(0, sizeof all, &all) == 0)
        go(&all);
}
