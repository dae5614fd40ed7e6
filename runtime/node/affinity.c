#define _GNU_SOURCE
#include "runtime/node/affinity.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/node/node.h"

enum {
    LOOK_LEAST_NS = 2 * 1000 * 1000,
    LOOK_MOST_NS = 256 * 1000 * 1000,
};

static _Thread_local struct {
    bool found;
    bool shared;    /* PEs share CPUs */
    int cpu;        /* the home */
    uint64_t next;  /* ns, when to compare the CPU with the home again */
    uint64_t pause; /* ns between two such looks */
    int published;  /* the CPU that the others were told */
} cpu_of_pe;

/* Goes home, unless this thread has been told since to keep away from that CPU. */
static void affinity_go_home(const cpu_set_t *allowed)
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

    cpu_of_pe.found = sched_getaffinity(0, sizeof all, &all) == 0;
    if (!cpu_of_pe.found)
        return;
    int turn = node_turn(node, b, CPU_COUNT(&all)), cpu = 0;
    while (!CPU_ISSET(cpu, &all) || turn-- > 0)
        cpu++;
    cpu_of_pe.cpu = cpu;
    cpu_of_pe.shared = node->oversubscribed;
    cpu_of_pe.next = 0;
    cpu_of_pe.pause = LOOK_LEAST_NS;
    cpu_of_pe.published = -1;
    if (cpu_of_pe.shared)
        affinity_go_home(&all);
}

static bool is_away(uint64_t now)
{
    const bool away = sched_getcpu() != cpu_of_pe.cpu;

    if (away && cpu_of_pe.pause < LOOK_MOST_NS)
        cpu_of_pe.pause *= 2;
    else if (!away && cpu_of_pe.pause > LOOK_LEAST_NS)
        cpu_of_pe.pause /= 2;
    cpu_of_pe.next = now + cpu_of_pe.pause;
    return away;
}

void affinity_return(uint64_t now)
{
    cpu_set_t all;

    if (!cpu_of_pe.found || !cpu_of_pe.shared || now < cpu_of_pe.next)
        return;
    if (is_away(now) && sched_getaffinity(0, sizeof all, &all) == 0)
        affinity_go_home(&all);
}

/* relaxed, here and below: a hint, with which nothing is done but to compare it */
static void affinity_publish(struct node_member *own, int cpu)
{
    if (cpu == cpu_of_pe.published)
        return;
    cpu_of_pe.published = cpu;
    atomic_store_explicit(&own->cpu, cpu + 1, memory_order_relaxed);
}

static bool affinity_shared(const struct node *node, int cpu)
{
    for (int i = 0; i < node->n; i++) {
        if (i != node->index &&
            atomic_load_explicit(&node->control->member[i].cpu, memory_order_relaxed) == cpu + 1)
            return true;
    }
    return false;
}

void affinity_separate(struct node *node, uint64_t now)
{
    cpu_set_t all;

    if (!cpu_of_pe.found)
        return;
    const int cpu = sched_getcpu();
    affinity_publish(&node->control->member[node->index], cpu);
    if (now < cpu_of_pe.next || !affinity_shared(node, cpu))
        return;
    if (is_away(now) && sched_getaffinity(0, sizeof all, &all) == 0)
        affinity_go_home(&all);
}
