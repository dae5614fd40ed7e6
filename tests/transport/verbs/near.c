/* Several NICs at different distances: which of them two PEs use, whether their networks are joined
 * or not, and how the PEs of a host share them out. */
#include "pes.h"

static char data[2 << 20];

static int most_used(struct fake_count before)
{
    int most = 0;

    for (int i = 1; i < FAKE_DEVICES; i++) {
        if (fake.of_device[i] - before.of_device[i] > fake.of_device[most] - before.of_device[most])
            most = i;
    }
    return most;
}

/* By which NIC PE `from` sends what is small; -1: by more than one. */
static int small_by(int from)
{
    uint64_t value = 1;

    post(from, put(&value, 64, 8)); /* keys are asked for, and replied */
    settle();
    struct fake_count before = fake;
    for (int i = 0; i < 8; i++) {
        post(from, put(&value, 64, 8));
        settle();
    }
    const int most = most_used(before);
    return fake.of_device[most] - before.of_device[most] == fake.works - before.works ? most : -1;
}

static int all_sent(const struct fake_count *before)
{
    int carrying = 0;

    for (int i = 0; i < FAKE_DEVICES; i++)
        carrying += fake.of_device[i] > before->of_device[i];
    return carrying;
}

static void start(int devices, bool rails, bool notified)
{
    prepare(1);
    fake.devices = devices;
    fake.infiniband = 1;
    fake.rails = rails;
    fake.rails_told = notified;
    open_both();
    warm_up();
}

static void stop(void)
{
    CHECK_EQ(not_ok + pe[0].passed_down + pe[1].passed_down, 0);
    CHECK(!strstr(pe[0].notified, "has failed"));
    end();
}

/* So many PEs on each of two hosts with so many NICs, all equally near: PEs of the same number on
 * both hosts use one NIC of their own for what is small, as far as there are some, and four for
 * what is large. */
static void shared_out(int pes, int nics)
{
    int users[FAKE_DEVICES] = {0};

    for (int i = 0; i < pes; i++) {
        turns[0] = turns[1] = i;
        start(nics, false, false);
        const int mine = small_by(0);
        CHECK(mine >= 0 && mine == small_by(1));
        users[mine]++;
        struct fake_count before = fake;
        post(0, put(data, 0, sizeof data));
        settle();
        CHECK_EQ(all_sent(&before), nics < RAILS_MOST ? nics : RAILS_MOST);
        stop();
    }
    for (int i = 0; i < nics; i++)
        CHECK(users[i] == pes / nics || users[i] == pes / nics + (pes % nics != 0));
    turns[0] = turns[1] = 0;
}

/* Any two PEs, on hosts whose rails are not joined: what is said of them in addresses is used, or
 * else their places; either way every byte gets there by verbs. */
static void rails_are_kept(bool notified)
{
    for (int nics = 1; nics <= FAKE_DEVICES; nics *= 2) {
        for (int i = 0; i < nics; i++) {
            for (int k = 0; k < nics; k++) {
                turns[0] = i;
                turns[1] = k;
                for (int d = 0; notified && d < FAKE_DEVICES; d++) {
                    distance[0][d] = d == i ? 0 : 3;
                    distance[1][d] = d == k ? 0 : 3;
                }
                start(nics, true, notified);
                const int by = small_by(0);
                CHECK(by >= 0 && by == small_by(1));
                CHECK(!notified || by == i || by == k); /* near to one of the two at least */
                post(0, put(data, 0, sizeof data));
                post(1, put(data, 0, sizeof data));
                settle();
                stop();
            }
        }
    }
    turns[0] = turns[1] = 0;
    memset(distance, 0, sizeof distance);
}

/* On one network each PE uses what is nearest to it, and says why. */
static void nearest_first(void)
{
    for (int i = 0; i < FAKE_DEVICES; i++) {
        const int k = (3 * i + 2) % FAKE_DEVICES;
        for (int d = 0; d < FAKE_DEVICES; d++) {
            distance[0][d] = d == i ? 0 : 2;
            distance[1][d] = d == k ? 0 : 2;
        }
        start(FAKE_DEVICES, false, true); /* addresses of many subnets, as where it is routed */
        stop();
        start(FAKE_DEVICES, false, false);
        CHECK_EQ(small_by(0), i);
        CHECK_EQ(small_by(1), k);
        char line[80];
        snprintf(line, sizeof line, "NIC 1 of this PE: fake%d port 1", i);
        CHECK_HAS(pe[0].notified, line);
        CHECK_HAS(pe[0].notified, "Gbit/s, somewhere");
        stop();
    }
    memset(distance, 0, sizeof distance);
}

/* The nearest takes what is small even if its queue pair is the last to be made. */
static void nearest_comes_late(void)
{
    distance[0][1] = distance[1][1] = 1;
    prepare(1);
    fake.devices = 2;
    open_both();
    uint64_t value = 7;
    post(0, put(&value, 8, 8));
    CHECK(pe[0].notes == 2); /* offers, of which that of the best is kept back */
    const typeof(pe[0].note[0]) first = pe[0].note[0];
    pe[0].note[0] = pe[0].note[1];
    pe[0].notes = 1;
    for (int i = 0; i < 50; i++)
        drive();
    CHECK_EQ(ok, 0);
    CHECK(pe[0].notes < NOTES);
    pe[0].note[pe[0].notes++] = first;
    settle();
    CHECK_EQ(*word(1, 8), 7);
    CHECK_EQ(small_by(0), 0);
    CHECK_EQ(small_by(1), 0);
    stop();
    memset(distance, 0, sizeof distance);
}

/* When the nearest goes, the others carry all. */
static void nearest_goes(void)
{
    distance[0][0] = distance[1][0] = distance[0][2] = distance[1][2] = 1;
    start(3, false, false);
    CHECK_EQ(small_by(0), 1);
    fake_port(1, false);
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
    CHECK(small_by(0) != 1);
    CHECK_EQ(not_ok + pe[0].passed_down, 0);
    end();
    memset(distance, 0, sizeof distance);
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (int nics = 1; nics <= FAKE_DEVICES; nics++) {
        for (int pes = 1; pes <= 8; pes += 1 + pes / 2) /* 1, 2, 4, 7 */
            shared_out(pes, nics);
    }
    rails_are_kept(true);
    rails_are_kept(false);
    nearest_first();
    nearest_comes_late();
    nearest_goes();
    return 0;
}
