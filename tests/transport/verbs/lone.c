/* Small puts of which nothing else is under way: each leaves at once and ends in one go. */
#include "pes.h"

#include <errno.h>
#include <string.h>

static struct transport_request loose(struct transport_request r)
{
    r.flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
    return r;
}

/* By one work request, and a post of its own. */
static void put_alone(struct transport_request r)
{
    const struct fake_count before = fake;

    post(0, loose(r));
    CHECK_EQ(fake.posts - before.posts, 1);
    settle();
    CHECK_EQ(fake.works - before.works, 1);
    CHECK_EQ(fake.writes - before.writes, 1);
}

/* What one goes by is of use for the next only as far as it goes: to the end of its chunk, of its
 * segment, and no further. */
static void everywhere(void)
{
    static const uint64_t at[] = {
        CHUNK_BYTES - 8, CHUNK_BYTES,    0, SEGMENT - 8, 64, CHUNK_BYTES - 7,
        SEGMENT - 3,     CHUNK_BYTES - 1};
    unsigned char data[8], *there;

    with_counters = true;
    prepare(1);
    fake.atomics = true;
    open_both();
    with_counters = false;
    warm_up();
    for (unsigned i = 0; i < 2 * sizeof at / sizeof at[0]; i++) {
        const uint64_t offset = at[i % 8], bytes = SEGMENT - offset < 8 ? SEGMENT - offset : 8;
        struct transport_request r = put(data, offset, bytes);

        memset(data, (int)i + 1, sizeof data);
        if (i >= 8 && offset % CHUNK_BYTES + bytes <= CHUNK_BYTES)
            put_alone(r);
        else
            post(0, loose(r)), settle(); /* keys are asked for; or it is in two chunks */
        there = (unsigned char *)pe[1].memory + offset;
        CHECK(memcmp(there, data, bytes) == 0);
        r = put(data, 64, 8); /* as far behind the beginning of another segment */
        r.segment = 1;
        post(0, loose(r));
        settle();
        CHECK(memcmp(&pe[1].counters[8], data, 8) == 0);
        CHECK(memcmp(there, data, bytes) == 0);
    }
    CHECK_EQ(not_ok, 0);
    post(0, loose(put(data, SEGMENT - 8, 8)));
    settle();
    post(0, loose(put(data, SEGMENT - 7, 8)));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_HAS(pe[0].why, "ends before");
    end();
}

static void sizes(int inline_most)
{
    char data[SMALL_BYTES + 1];

    prepare(1);
    fake.inline_most = inline_most;
    open_both();
    warm_up();
    for (unsigned bytes = 1; bytes <= sizeof data; bytes++) {
        memset(data, (int)bytes, sizeof data);
        post(0, loose(put(data, 64, bytes)));
        memset(data, 0, sizeof data); /* it has been copied */
        settle();
        memset(data, (int)bytes, sizeof data);
        CHECK(memcmp(pe[1].memory + 64, data, bytes) == 0);
    }
    CHECK_EQ(not_ok, 0);
    end();
}

/* Queues are not used up by them: more than any has room for. */
static void very_many(void)
{
    prepare(1);
    fake.sends_most = 64;
    fake.completions_most = 160;
    open_both();
    warm_up();
    for (uint64_t i = 0; i < 1000; i++) {
        put_alone(put(&i, 64, 8));
        CHECK_EQ(*word(1, 64), i);
    }
    end();
}

/* The queue pair does not take it: it goes by the transport below, and the next by a new path. */
static void refused(int error)
{
    uint64_t value = 1;

    begin(1);
    warm_up();
    put_alone(put(&value, 64, 8));
    value = 2;
    fake_refuse_post(1, error);
    post(0, loose(put(&value, 64, 8)));
    settle();
    CHECK_EQ(*word(1, 64), 2);
    CHECK_EQ(pe[0].passed_down, 1);
    CHECK_EQ(not_ok + pe[0].lost, 0);
    end();
}

/* The path breaks under it: it arrives all the same, once, also where more have come behind it. */
static void broken(enum ibv_wc_status status, int behind, bool loses_answers)
{
    uint64_t value = 0;

    begin((unsigned)behind + 1);
    fake.loses_answers = loses_answers;
    warm_up();
    put_alone(put(&value, 64, 8));
    fake_fail(1, status);
    for (int i = 0; i <= behind; i++) {
        value++;
        post(0, loose(put(&value, 64 + 64 * (uint64_t)i, 8)));
    }
    settle();
    CHECK_EQ(not_ok + pe[0].lost, 0);
    for (int i = 0; i <= behind; i++)
        CHECK_EQ(*word(1, 64 + 64 * (uint64_t)i), (uint64_t)i + 1);
    end();
}

/* Of which it is said that more follow, and that progress does: none leaves alone. */
static void held(void)
{
    enum { HELD = 20 };
    uint64_t data[HELD];

    prepare(1);
    open_both();
    warm_up();
    for (uint64_t i = 0; i < HELD; i++) {
        data[i] = i + 1;
        post(0, loose(put(&data[i], i * 64, 8)));
        settle();
    }
    memset(pe[1].memory, 0, HELD * 64);
    const struct fake_count before = fake;
    for (uint64_t i = 0; i < HELD; i++) {
        struct transport_request r = loose(put(&data[i], i * 64, 8));
        r.flags |= TRANSPORT_HELD;
        post(0, r);
    }
    CHECK_EQ(fake.posts, before.posts);
    settle();
    for (uint64_t i = 0; i < HELD; i++)
        CHECK_EQ(*(uint64_t *)(void *)((char *)pe[1].memory + i * 64), i + 1);
    CHECK_EQ(not_ok, 0);
    end();
}

int main(void)
{
    static const int inlines[] = {0, 7, 8, 64, 128, 1024};

    CHECK_EQ(settings_load(), GSHMEM_OK);
    everywhere();
    held();
    for (unsigned i = 0; i < sizeof inlines / sizeof inlines[0]; i++)
        sizes(inlines[i]);
    very_many();
    refused(EINVAL);
    refused(ENOMEM);
    for (int behind = 0; behind < 20; behind += 3) {
        broken(IBV_WC_RETRY_EXC_ERR, behind, false);
        broken(IBV_WC_WR_FLUSH_ERR, behind, true);
    }
    return 0;
}
