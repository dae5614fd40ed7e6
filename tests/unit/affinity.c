/* Where PEs share CPUs (runtime/node/affinity.c): each goes to the one that is its turn and is bound to none, comes back
 * when the system has moved it, less and less often where that moves it again, and stays away from CPUs that it
 * was told to keep away from. Where each PE has a CPU it goes there only if it shares one with another PE. The
 * system's part is played here. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"

static cpu_set_t mask;
static int runs_on, moves;
static bool refuses;

static int played_cpu(void)
{
    return runs_on;
}

static int played_get(pid_t pid, size_t bytes, cpu_set_t *to)
{
    CHECK(pid == 0 && bytes == sizeof mask);
    *to = mask;
    return refuses ? -1 : 0;
}

/* Moves who is not where it may be, as the system does. */
static int played_set(pid_t pid, size_t bytes, const cpu_set_t *to)
{
    CHECK(pid == 0 && bytes == sizeof mask);
    mask = *to;
    moves += !CPU_ISSET(runs_on, &mask);
    while (!CPU_ISSET(runs_on, &mask))
        runs_on = (runs_on + 1) % CPU_SETSIZE;
    return 0;
}

#define sched_getcpu      played_cpu
#define sched_getaffinity played_get
#define sched_setaffinity played_set
#include "runtime/node/affinity.c"
#undef sched_getcpu
#undef sched_getaffinity
#undef sched_setaffinity

static const uint64_t ms = 1000 * 1000;
static const struct bootstrap *nobody; /* node_turn is played, too */
static int turn;

int node_turn(const struct node *host, const struct bootstrap *b, int cpus)
{
    CHECK(host && b == nobody && turn < cpus);
    return turn;
}

/* On CPUs 2, 3 and 5, of which `index` is this PE's. */
static void begin(int index)
{
    struct node h = {.oversubscribed = true};

    CPU_ZERO(&mask);
    CPU_SET(2, &mask);
    CPU_SET(3, &mask);
    CPU_SET(5, &mask);
    turn = index;
    runs_on = 2;
    moves = 0;
    affinity_begin(&h, nobody);
}

static void goes_to_its_turn(void)
{
    static const int expected[] = {2, 3, 5};

    for (int i = 0; i < 3; i++) {
        begin(i);
        CHECK_EQ(runs_on, expected[i]);
        CHECK_EQ(CPU_COUNT(&mask), 3);
    }
}

/* How often it moves in a second in which it is asked every 0.1 ms, while the system sends it away each so many
 * ms; 0: never. */
static int moves_in_a_second(uint64_t since, int sent_away)
{
    moves = 0;
    for (int i = 0; i < 10000; i++) {
        if (sent_away && i % (10 * sent_away) == 0)
            runs_on = 2;
        affinity_return(since + (uint64_t)i * ms / 10);
    }
    return moves;
}

static void comes_back(void)
{
    uint64_t now = 1000 * ms;

    begin(1);
    affinity_return(now);
    CHECK_EQ(moves_in_a_second(now, 0), 0);
    now += 1000 * ms;
    runs_on = 5;
    affinity_return(now);
    CHECK_EQ(runs_on, 3);
    CHECK_EQ(CPU_COUNT(&mask), 3);
    runs_on = 5; /* the system insists */
    affinity_return(now + ms);
    CHECK_EQ(runs_on, 5);
    affinity_return(now + 4 * ms);
    CHECK_EQ(runs_on, 3);
}

static void gives_way(void)
{
    begin(1);
    int first = moves_in_a_second(1000 * ms, 1), later = moves_in_a_second(3000 * ms, 1);
    CHECK(first >= 5 && first <= 12);
    CHECK(later >= 3 && later <= 5);
    CHECK_EQ(moves_in_a_second(5000 * ms, 0), 1); /* the last time; and is at ease again: */
    int again = moves_in_a_second(7000 * ms, 100);
    CHECK(again >= 9);
}

static void keeps_away(void)
{
    begin(1);
    CPU_CLR(3, &mask);
    runs_on = 5;
    CHECK_EQ(moves_in_a_second(1000 * ms, 0), 0);
    CHECK_EQ(CPU_COUNT(&mask), 2);
    CPU_SET(3, &mask);
    refuses = true;
    CHECK_EQ(moves_in_a_second(3000 * ms, 0), 0);
    refuses = false;
}

static void has_none(void)
{
    struct node roomy = {.oversubscribed = false};

    begin(1);
    affinity_begin(&roomy, nobody);
    runs_on = 5;
    CHECK_EQ(moves_in_a_second(1000 * ms, 0), 0);
}

/* ---- PEs that have a CPU each ---- */

static struct node_control *control;
static struct node three = {.index = 1, .n = 3};

static void begin_alone(void)
{
    begin(1);
    free(control);
    control = aligned_alloc(64, sizeof *control + 3 * sizeof control->member[0]);
    CHECK(control);
    memset(control, 0, sizeof *control + 3 * sizeof control->member[0]);
    three.control = control;
    runs_on = 5;
    affinity_begin(&three, nobody);
    CHECK_EQ(runs_on, 5); /* where there is room nobody is moved at the start */
}

static void told(int index, int cpu)
{
    control->member[index].cpu = cpu + 1;
}

static void separates(void)
{
    begin_alone();
    affinity_separate(&three, 1000 * ms);
    CHECK_EQ(runs_on, 5); /* nobody else has said that it is there */
    CHECK_EQ(control->member[1].cpu, 5 + 1);
    told(0, 2);
    told(2, 3);
    affinity_separate(&three, 2000 * ms);
    CHECK_EQ(runs_on, 5);
    told(2, 5);
    affinity_separate(&three, 3000 * ms);
    CHECK_EQ(runs_on, 3);
    CHECK_EQ(CPU_COUNT(&mask), 3);
    affinity_separate(&three, 4000 * ms);
    CHECK_EQ(control->member[1].cpu, 3 + 1);
    told(2, 3); /* and if it is at home it is for the other to go */
    affinity_separate(&three, 5000 * ms);
    CHECK_EQ(runs_on, 3);
    runs_on = 5;
    told(2, 5);
    affinity_separate(&three, 5001 * ms);
    CHECK_EQ(runs_on, 5); /* not so soon again */
    affinity_separate(&three, 5100 * ms);
    CHECK_EQ(runs_on, 3);
}

int main(void)
{
    goes_to_its_turn();
    comes_back();
    gives_way();
    keeps_away();
    has_none();
    separates();
    free(control);
    return 0;
}
