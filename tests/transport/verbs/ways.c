/* Neighbours that do not answer: the kernel looks for them within a call, for which nobody waits. */
#include "pes.h"

#include <string.h>

static void until_up(int paths)
{
    for (int i = 0; ((struct verbs *)pe[0].t)->to[1]->actives != paths; i++) {
        CHECK(i < 10000);
        drive();
    }
}

static void let_events_pass(void)
{
    for (int i = 0; i < 3 * RETRY_ROUNDS; i++)
        drive();
}

/* The kernel looks for a PE's neighbour for as long as it likes: nobody waits within a call, requests go on when it
 * has been found, and who waits for this side's part hears that it lives. */
static void first_ways_are_held(unsigned seed)
{
    uint64_t value = 7;

    prepare(seed);
    fake.devices = 1 + (int)seed % 3;
    open_both();
    fake_hold_ways(true);
    post(0, put(&value, 64, 8));
    post(1, put(&value, 72, 8));
    let_events_pass();
    CHECK_EQ(ok + not_ok + pe[0].lost + pe[1].lost, 0);
    fake_hold_ways(false);
    settle();
    CHECK_EQ(*word(1, 64) + *word(0, 72), 2 * value);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost + pe[0].passed_down + pe[1].passed_down, 0);
    end();
}

/* Other paths go on while one that has been down finds no neighbour. */
static void later_ways_are_held(void)
{
    static char data[4096];

    begin_with(1, 2);
    warm_up();
    until_up(2);
    fake_port(1, false);
    watch_poll((struct verbs *)pe[0].t);
    until_up(1);
    let_events_pass();
    fake_hold_ways(true);
    fake_port(1, true);
    let_events_pass();
    for (int i = 0; i < 50; i++) {
        fill(data, sizeof data, (unsigned)i);
        post(0, with_signal(put(data, 64, sizeof data), GSHMEM_SIGNAL_ADD, 0, 1));
        settle();
        CHECK(memcmp(pe[1].memory + 64, data, sizeof data) == 0);
    }
    CHECK_EQ(((struct verbs *)pe[0].t)->to[1]->actives, 1);
    CHECK(((struct verbs *)pe[0].t)->resolving > 0);
    fake_hold_ways(false);
    until_up(2);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost + pe[0].passed_down, 0);
    end();
}

/* What becomes of the queue pair when nobody wants it any more, while the kernel is at it. */
static void held_ways_are_abandoned(bool closes)
{
    uint64_t value = 7;

    begin_with(1, 2);
    fake_hold_ways(true);
    post(0, put(&value, 64, 8));
    let_events_pass();
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    gshmem_transport.lose(pe[1].t, 0, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(((struct verbs *)pe[0].t)->resolving, 2);
    fake_hold_ways(false);
    if (!closes)
        let_events_pass();
    CHECK(closes || ((struct verbs *)pe[0].t)->resolving == 0);
    end(); /* nothing is left */
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (unsigned seed = 1; seed <= 6; seed++)
        first_ways_are_held(seed);
    later_ways_are_held();
    held_ways_are_abandoned(false);
    held_ways_are_abandoned(true);
    return 0;
}
