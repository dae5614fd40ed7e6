/* A litmus test of counted puts over the fake NIC: N puts and one counter, where nothing keeps the
 * order of the puts. The counter may never be ahead of the bytes that are in place. The same with
 * one signal behind the puts, which counts on their order, has to be seen too early: this shows that
 * the NICs of the test reorder. */
#include "pes.h"

#include <stdlib.h>
#include <string.h>

enum { PUTS = 40, PLACE = 4 * STRIPE_BYTES, COUNTER = PUTS * PLACE, ROUNDS = 12, CONTROL_MOST = 500 };

static char source[PUTS][PLACE];
static uint64_t bytes_of[PUTS], arrived, counted, early, looked;
static bool complete[PUTS];

/* How many bytes are in place, of puts that are complete. */
static void count_arrived(void)
{
    for (int i = 0; i < PUTS; i++) {
        if (complete[i] || memcmp(pe[1].memory + i * PLACE, source[i], bytes_of[i]) != 0)
            continue;
        complete[i] = true;
        arrived += bytes_of[i];
    }
}

/* The counter is read first, as a PE that waits for it does. */
static void look(void)
{
    const uint64_t seen = __atomic_load_n(word(1, COUNTER), __ATOMIC_ACQUIRE);

    if (seen == counted) /* what has arrived meanwhile is not missed: it stays */
        return;
    CHECK(seen > counted);
    counted = seen;
    looked++;
    count_arrived();
    early += seen > arrived;
}

/* What a message holds, what one work request writes, and what is striped over paths. */
static uint64_t draw_bytes(void)
{
    static const uint64_t most[] = {8, 100, 1000, TRANSPORT_COPIED, 3 * TRANSPORT_COPIED, PLACE};

    return 1 + (uint64_t)rand() % most[rand() % 6];
}

static struct transport_request counted_put(int i, bool each)
{
    struct transport_request r = put(source[i], (uint64_t)i * PLACE, bytes_of[i]);

    r.flags = TRANSPORT_LOOSE | (rand() % 4 ? TRANSPORT_MORE : 0);
    return each ? with_signal(r, GSHMEM_SIGNAL_ADD, COUNTER, bytes_of[i]) : r;
}

/* The target alone makes progress: it serves a message while what other queue pairs carry is on its
 * way. */
static void drive_target(void)
{
    int events;

    CHECK_EQ(gshmem_transport.progress(pe[1].t, &events), GSHMEM_OK);
    look();
}

/* each: every put counts itself; else one signal is sent behind all of them. */
static void round_of_puts(unsigned round, bool each)
{
    uint64_t due = 0;

    memset(pe[1].memory, 0, COUNTER);
    memset(complete, 0, sizeof complete);
    *word(1, COUNTER) = arrived = counted = 0;
    for (int i = 0; i < PUTS; i++) {
        bytes_of[i] = draw_bytes();
        due += bytes_of[i];
        for (uint64_t at = 0; at < bytes_of[i]; at++)
            source[i][at] = (char)(1 + (at * 7 + (uint64_t)i + round) % 255); /* never 0 */
    }
    for (int i = 0; i < PUTS; i++) {
        post(0, counted_put(i, each));
        if (rand() % 4 == 0)
            drive();
        else if (rand() % 2)
            drive_target();
    }
    if (!each) {
        struct transport_request signal =
            with_signal(put(NULL, 0, 0), GSHMEM_SIGNAL_ADD, COUNTER, due);
        signal.flags = TRANSPORT_LOOSE;
        post(0, signal);
        drive_target();
    }
    while (ok + not_ok < posted) {
        drive();
        look();
    }
    look();
    CHECK_EQ(counted, due);
    count_arrived();
    CHECK_EQ(arrived, due);
}

static void run(unsigned seed, int devices, bool each)
{
    queue_pairs = 4;
    prepare(seed);
    fake.devices = devices;
    fake.soft = false;
    fake.reorders = true;
    fake.late = fake.late && each; /* else all is in its place before the target looks */
    open_both();
    warm_up();
    early = looked = 0;
    fake_look = look;
    srand(seed);
    for (unsigned round = 0; each ? round < ROUNDS : !early && round < CONTROL_MOST; round++)
        round_of_puts(round, each);
    fake_look = NULL;
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
    if (each)
        CHECK_EQ(early, 0);
    CHECK(each || early);
    CHECK(!each || looked > PUTS); /* it was not seen at the end alone */
}

int main(void)
{
    for (unsigned seed = 1; seed <= 3; seed++) {
        run(seed, 1, true);
        run(seed, 2, true);
        run(seed, 2, false);
    }
    return 0;
}
