/* The proxy's side of a channel, step by step: what it takes, when it goes on, what it says is done. */
#include "fake.h"

static struct gshmem_command put(int pe, uint64_t offset, uint64_t bytes)
{
    return (struct gshmem_command){
        .kind = GSHMEM_COMMAND_PUT,
        .pe = (uint32_t)pe,
        .address = (uintptr_t)fake_heap + offset,
        .local = (uintptr_t)fake_heap,
        .size = bytes,
    };
}

static struct gshmem_command value(int pe, uint64_t v)
{
    return (struct gshmem_command){
        .kind = GSHMEM_COMMAND_VALUE,
        .type = 8,
        .pe = (uint32_t)pe,
        .address = (uintptr_t)fake_heap + 8,
        .local = v,
    };
}

static struct gshmem_command signal_on(int pe, uint64_t offset)
{
    return (struct gshmem_command){
        .kind = GSHMEM_COMMAND_SIGNAL,
        .amo = GSHMEM_SIGNAL_ADD,
        .pe = (uint32_t)pe,
        .address = (uintptr_t)fake_heap + offset,
        .local = 1,
    };
}

static struct gshmem_command fetch_add(int pe)
{
    return (struct gshmem_command){
        .kind = GSHMEM_COMMAND_ATOMIC,
        .amo = GSHMEM_AMO_ADD,
        .type = GSHMEM_TYPE_UINT64,
        .pe = (uint32_t)pe,
        .address = (uintptr_t)fake_heap + 16,
        .local = 1,
    };
}

static struct gshmem_command answered(struct gshmem_command c, uint32_t response, uint32_t tag)
{
    c.responds = 1;
    c.response = response;
    c.tag = tag;
    return c;
}

static void write_one(struct gshmem_command c)
{
    fake_write(&c);
}

static void write_pair(struct gshmem_command first, struct gshmem_command second)
{
    first.more = 1;
    fake_write(&first);
    fake_write(&second);
}

/* Done is contiguous, though the ends come in any order; what is taken may be written again. */
static void test_out_of_order(void)
{
    fake_begin();
    for (int i = 0; i < 4; i++)
        write_one(put(i, 64, 32));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 4);
    CHECK_EQ(fake_requests, 4);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(fake_request[i].pe, i);
    fake_end(2, GSHMEM_OK);
    CHECK_EQ(fake_done, 0);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 1);
    fake_end(1, GSHMEM_OK); /* of position 3 */
    CHECK_EQ(fake_done, 1);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 4);
    CHECK(!channel_has_work(&fake_channel));
    write_one(put(0, 64, 32));
    CHECK(channel_has_work(&fake_channel));
    CHECK(channel_take(&fake_channel));
    CHECK(!channel_take(&fake_channel));
}

/* A command stays, with all behind it, while there is no room; then they go in order. */
static void test_back_pressure(void)
{
    fake_begin();
    fake_room = 2;
    for (int i = 0; i < 4; i++)
        write_one(value(i, (uint64_t)i));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 2);
    for (int i = 0; i < 10; i++)
        CHECK(!channel_take(&fake_channel));
    CHECK(!channel_has_work(&fake_channel)); /* what is not to be had is nothing to stay awake for */
    fake_end(0, GSHMEM_OK);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 2);
    fake_room = 1;
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 3);
    fake_room = 1;
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 4);
    CHECK_EQ(fake_request[0].pe, 2);
    CHECK_EQ(fake_request[1].pe, 3);
    CHECK_EQ(*(uint64_t *)fake_request[1].local, 3); /* records are not shared */
    CHECK_EQ(*(uint64_t *)fake_request[0].local, 2);
    fake_end(1, GSHMEM_OK);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 4);
}

/* As many are on their way as there are records, and not one more, however many slots are free. */
static void test_records(void)
{
    uint64_t written = 0, ended = 0;

    fake_begin();
    while (written < 3 * FAKE_SLOTS) {
        while (written < 3 * FAKE_SLOTS &&
               gshmem_channel_has_room(&fake_device.ring, fake_ticket + 1)) {
            write_one(value(0, written++));
        }
        channel_take(&fake_channel);
        CHECK(fake_tail - fake_done_position() <= FAKE_SLOTS);
        CHECK(fake_requests >= FAKE_SLOTS - 1 || fake_tail == fake_ticket);
        CHECK(fake_requests > 0);
        CHECK_EQ(*(uint64_t *)fake_request[0].local, ended);
        fake_end(0, GSHMEM_OK);
        ended++;
    }
    while (fake_requests) {
        fake_end(0, GSHMEM_OK);
        channel_take(&fake_channel);
    }
    CHECK_EQ(fake_done, written);
}

/* A put and its signal are one request, also where the second slot comes late or lies behind the
 * ring's end. */
static void test_put_signal(void)
{
    for (uint64_t before = 0; before < 2 * FAKE_SLOTS; before++) {
        fake_begin();
        fake_at_once = true;
        for (uint64_t i = 0; i < before; i++) {
            write_one(value(0, i));
            channel_take(&fake_channel);
        }
        fake_at_once = false;
        struct gshmem_command first = put(3, 128, 100), second = signal_on(3, 256);
        first.more = 1;
        fake_write(&first);
        CHECK(!channel_take(&fake_channel)); /* half of it is not enough */
        CHECK_EQ(fake_tail, before);
        fake_write(&second);
        CHECK(channel_take(&fake_channel));
        CHECK_EQ(fake_tail, before + 2);
        CHECK_EQ(fake_requests, 1);
        CHECK_EQ(fake_request[0].bytes, 100);
        CHECK_EQ(fake_request[0].offset, 128);
        CHECK_EQ(fake_request[0].signal_op, GSHMEM_SIGNAL_ADD);
        CHECK_EQ(fake_request[0].signal_offset, 256);
        CHECK_EQ(fake_done, before);
        fake_end(0, GSHMEM_OK);
        CHECK_EQ(fake_done, before + 2);
    }
}

static void write_packed(struct gshmem_command first, struct gshmem_command second)
{
    struct gshmem_slot slot[2];

    first.more = 1;
    CHECK_EQ(gshmem_command_slots(&first, &second, slot), 1);
    fake_write_slot(slot[0]);
}

/* A put and its signal in one slot: all bits of its fields, and what does not fit. */
static void test_packed_fields(void)
{
    const uint64_t address = (UINT64_C(1) << 48) - 1;
    struct gshmem_command first = put(FAKE_PES - 1, 0, 0), second = signal_on(0, 0), was[2], one;
    struct gshmem_slot slot[2];

    for (int bit = 0; bit < 64; bit++) {
        const uint64_t only = UINT64_C(1) << bit;
        for (int field = 0; field < 5; field++) {
            first.address = field == 0 ? only : 0;
            first.local = field == 1 ? only : 0;
            first.size = field == 2 ? only : 0;
            second.address = field == 3 ? only : 0;
            second.local = field == 4 ? only : 0;
            const bool fits = field == 2   ? bit < 14
                              : field == 3 ? bit >= 3 && bit < 48
                                           : bit < (field == 4 ? 32 : 48);
            first.more = 1;
            CHECK_EQ(gshmem_command_slots(&first, &second, slot), fits ? 1 : 2);
            one = gshmem_command_decode(slot[0]);
            CHECK_EQ(one.kind, fits ? GSHMEM_COMMAND_PUT_SIGNAL : GSHMEM_COMMAND_PUT);
            CHECK_EQ(one.more, !fits);
            if (!fits)
                continue;
            gshmem_put_signal_decode(&one, &was[0], &was[1]);
            CHECK(was[0].kind == GSHMEM_COMMAND_PUT && was[1].kind == GSHMEM_COMMAND_SIGNAL);
            CHECK(was[0].address == first.address && was[0].local == first.local);
            CHECK(was[0].size == first.size && was[0].pe == first.pe);
            CHECK(was[1].address == second.address && was[1].local == second.local);
            CHECK_EQ(was[1].amo, GSHMEM_SIGNAL_ADD);
        }
    }
    first = put(1, 0, 8);
    first.address = first.local = address;
    first.size = (1 << 14) - 1;
    second.address = address & ~UINT64_C(7);
    second.local = UINT32_MAX;
    CHECK_EQ(gshmem_command_slots(&first, &second, slot), 1);
    one = gshmem_command_decode(slot[0]);
    gshmem_put_signal_decode(&one, &was[0], &was[1]);
    CHECK(was[0].address == address && was[0].local == address && was[0].size == first.size);
    CHECK(was[1].address == second.address && was[1].local == UINT32_MAX);
    first = value(1, 5); /* its value does not fit */
    CHECK_EQ(gshmem_command_slots(&first, &second, slot), 2);
    CHECK_EQ(gshmem_command_slots(&first, NULL, slot), 1);
}

static void test_packed(void)
{
    struct gshmem_command one = put(3, 128, 100);

    fake_begin();
    write_packed(one, signal_on(3, 256));
    write_packed(answered(one, 7, 33), signal_on(3, 264));
    write_one(put(2, 0, 8));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 3);
    CHECK_EQ(fake_requests, 3);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fake_request[i].pe, 3);
        CHECK_EQ(fake_request[i].bytes, 100);
        CHECK_EQ(fake_request[i].offset, 128);
        CHECK_EQ((uintptr_t)fake_request[i].local, one.local);
        CHECK_EQ(fake_request[i].signal_op, GSHMEM_SIGNAL_ADD);
        CHECK_EQ(fake_request[i].signal_segment, 1);
        CHECK_EQ(fake_request[i].signal_offset, 256 + 8 * i);
        CHECK_EQ(fake_request[i].signal_value, 1);
    }
    CHECK_EQ(fake_request[2].signal_op, 0);
    fake_end(1, GSHMEM_OK);
    CHECK_EQ(fake_response[7].answer, 33 << 8);
    fake_end(1, GSHMEM_OK);
    CHECK_EQ(fake_done, 0);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 3);
}

/* What is wrong with a packed put is found as if it had two slots. */
static void test_packed_mistakes(void)
{
    struct gshmem_command wrong[6][2];
    uint64_t failed = 0;

    fake_begin();
    log_set_level(LOG_NONE);
    for (int i = 0; i < 6; i++) {
        wrong[i][0] = put(1, 128, 100);
        wrong[i][1] = signal_on(1, 256);
    }
    wrong[0][0].pe = FAKE_PES;
    wrong[1][0].address += FAKE_BYTES;
    wrong[2][0].local += FAKE_BYTES;
    wrong[3][1].address = (uintptr_t)fake_heap + FAKE_BYTES;
    wrong[4][1].address = (uintptr_t)fake_heap - 8;
    wrong[5][1].amo = 7;
    for (int i = 0; i < 6; i++) {
        write_packed(wrong[i][0], wrong[i][1]);
        CHECK(channel_take(&fake_channel));
        CHECK_EQ(fake_requests, 0);
        CHECK_EQ(fake_failed >> 8, ++failed);
    }
    struct gshmem_command more = {.kind = GSHMEM_COMMAND_PUT_SIGNAL, .pe = 1, .more = 1};
    write_one(more); /* nothing belongs to it, and it waits for nothing */
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_failed >> 8, ++failed);
    log_set_level(LOG_WARN);

    /* no thread waits for a response: the proxy is told of the signal that was not sent */
    fake_begin();
    write_packed(put(1, 0, 8), signal_on(1, 264));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_unsent_signal, 0);
    fake_end(0, GSHMEM_ERR_DEVICE);
    CHECK_EQ(fake_unsent_signal, (uintptr_t)fake_heap + 264);
    CHECK_EQ(fake_unsent_status, GSHMEM_ERR_DEVICE);
}

/* An old value goes to the answer, or to memory. */
static void test_atomics(void)
{
    uint64_t *result = (uint64_t *)(fake_heap + 512);
    struct gshmem_command to_memory = {.kind = GSHMEM_COMMAND_RESULT, .local = (uintptr_t)result};

    fake_begin();
    write_one(answered(fetch_add(0), 7, 33));
    write_pair(fetch_add(0), to_memory);
    write_one(fetch_add(0)); /* which nobody asks for */
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_requests, 3);
    *fake_request[0].old = 10;
    *fake_request[1].old = 11;
    CHECK(!fake_request[2].old);
    fake_end(1, GSHMEM_OK);
    CHECK_EQ(*result, 11);
    CHECK_EQ(fake_response[7].answer, 0);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_response[7].answer, 33 << 8);
    CHECK_EQ(fake_response[7].value[0], 10);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 4);
}

static struct gshmem_command fetch(uint32_t pe, uint64_t offset, uint32_t bytes)
{
    return (struct gshmem_command){.kind = GSHMEM_COMMAND_FETCH,
                                   .type = bytes,
                                   .pe = pe,
                                   .raises = 1,
                                   .address = (uintptr_t)fake_heap + offset};
}

/* An element goes to the answer that its command names, whichever comes first; a failure too, and
 * to the error policy. Several are in flight with answers of their own. */
static void test_fetches(void)
{
    fake_begin();
    log_set_level(LOG_NONE);
    write_one(answered(fetch(1, 64, 8), 3, 9));
    write_one(answered(fetch(2, FAKE_BYTES - 16, 16), 4, 200));
    write_one(answered(fetch(3, 1, 1), 1023, 1));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_requests, 3);
    for (int i = 0; i < 3; i++) {
        const struct transport_request *r = &fake_request[i];
        CHECK_EQ(r->kind, TRANSPORT_GET);
        CHECK_EQ(r->pe, i + 1);
        CHECK_EQ(r->segment, 1);
        CHECK_EQ(r->bytes, i == 0 ? 8 : i == 1 ? 16 : 1);
        CHECK_EQ(r->offset, i == 0 ? 64 : i == 1 ? FAKE_BYTES - 16 : 1);
        CHECK(r->flags & TRANSPORT_KEPT && r->flags & TRANSPORT_MORE && !r->old);
        memset(r->local, i + 1, r->bytes);
    }
    fake_end(1, GSHMEM_OK);
    CHECK_EQ(fake_response[4].answer, 200 << 8);
    CHECK_EQ(fake_response[4].value[0], 0x0202020202020202);
    CHECK_EQ(fake_response[4].value[1], 0x0202020202020202);
    CHECK_EQ(fake_response[3].answer, 0);
    CHECK_EQ(fake_done, 0);
    fake_end(1, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_response[1023].answer, 1 << 8 | GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_raises, 1);
    CHECK_EQ(fake_raised[0], GSHMEM_ERR_PEER_DEAD);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_response[3].answer, 9 << 8);
    CHECK_EQ(fake_response[3].value[0], 0x0101010101010101);
    CHECK_EQ(fake_response[3].value[1], 0);
    CHECK_EQ(fake_done, 3);
    CHECK_EQ(fake_failed, 0);

    /* the same record again: nothing of an earlier answer is left in it */
    for (int i = 0; i < FAKE_SLOTS - 3; i++)
        write_one(fetch_add(0));
    write_one(answered(fetch(1, 0, 4), 3, 10));
    CHECK(channel_take(&fake_channel));
    while (fake_requests > 1)
        fake_end(0, GSHMEM_OK);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_response[3].answer, 10 << 8);
    CHECK_EQ(fake_response[3].value[0], 0);
    CHECK_EQ(fake_done, fake_ticket);
    log_set_level(LOG_WARN);
}

/* A failure is told once: to who waits for the answer, or else to the next quiet. */
static void test_failures(void)
{
    fake_begin();
    write_one(answered(put(1, 0, 8), 1, 5));
    write_one(put(1, 0, 8));
    write_one(put(2, 0, 8));
    channel_take(&fake_channel);
    fake_end(0, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_response[1].answer, 5 << 8 | GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_done, 1);
    CHECK_EQ(fake_failed, 0);
    fake_end(1, GSHMEM_ERR_TRANSPORT); /* position 2 */
    CHECK_EQ(fake_done, 1);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 3 | GSHMEM_DONE_FAILED);
    CHECK_EQ(fake_failed, 1 << 8 | GSHMEM_ERR_TRANSPORT);

    /* a dead peer: post itself says so */
    fake_refusal = GSHMEM_ERR_PEER_DEAD;
    for (int i = 0; i < 3; i++)
        write_one(value(1, 0));
    write_one(answered(value(1, 0), 2, 6));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_done, 7 | GSHMEM_DONE_FAILED);
    CHECK_EQ(fake_failed, 4 << 8 | GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_response[2].answer, 6 << 8 | GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_raises, 0);
}

/* A collective may wait for what a signal brings: the proxy is told that it was not sent, at once
 * or later, unless a thread waits for the answer. */
static void test_unsent(void)
{
    fake_begin();
    fake_refusal = GSHMEM_ERR_MEMORY;
    write_pair(put(1, 0, 8), signal_on(1, 256));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_unsent_signal, (uintptr_t)fake_heap + 256);
    CHECK_EQ(fake_unsent_status, GSHMEM_ERR_MEMORY);
    CHECK_EQ(fake_failed, 1 << 8 | GSHMEM_ERR_MEMORY);

    fake_begin();
    write_pair(put(1, 0, 8), signal_on(1, 264));
    write_pair(put(1, 0, 8), signal_on(1, 272));
    write_pair(answered(put(1, 0, 8), 1, 5), signal_on(1, 280));
    write_one(put(1, 0, 8));
    CHECK(channel_take(&fake_channel));
    fake_end(1, GSHMEM_OK);
    fake_end(2, GSHMEM_ERR_DEVICE);
    fake_end(1, GSHMEM_ERR_DEVICE);
    CHECK_EQ(fake_unsent_signal, 0);
    fake_end(0, GSHMEM_ERR_DEVICE);
    CHECK_EQ(fake_unsent_signal, (uintptr_t)fake_heap + 264);
    CHECK_EQ(fake_unsent_status, GSHMEM_ERR_DEVICE);
}

static void test_raises(void)
{
    struct gshmem_command c = value(1, 0);

    fake_begin();
    c.raises = 1;
    write_one(c);
    write_one(answered(c, 9, 1));
    channel_take(&fake_channel);
    fake_end(0, GSHMEM_ERR_PEER_DEAD);
    fake_end(0, GSHMEM_ERR_UNREACHABLE);
    CHECK_EQ(fake_raises, 2);
    CHECK_EQ(fake_raised[0], GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(fake_raised[1], GSHMEM_ERR_UNREACHABLE);
    CHECK_EQ(fake_response[9].answer, 1 << 8 | GSHMEM_ERR_UNREACHABLE);

    /* what a kernel found out itself fails no channel */
    c = (struct gshmem_command){.kind = GSHMEM_COMMAND_RAISE, .type = GSHMEM_ERR_TIMEOUT};
    log_set_level(LOG_NONE);
    write_one(answered(c, 10, 2));
    channel_take(&fake_channel);
    log_set_level(LOG_WARN);
    CHECK_EQ(fake_raised[2], GSHMEM_ERR_TIMEOUT);
    CHECK_EQ(fake_response[10].answer >> 8, 2);
    CHECK_EQ(fake_done, 3 | GSHMEM_DONE_FAILED);
    CHECK_EQ(fake_failed >> 8, 1);
}

static struct gshmem_command fence_behind(uint64_t position)
{
    return (struct gshmem_command){.kind = GSHMEM_COMMAND_FENCE, .address = position};
}

/* A fence waits for what is before it in other channels, and parts what goes before it from what
 * comes after, without waiting for either to be done. */
static void test_fence(void)
{
    fake_begin();
    fake_other.taken = 5;
    write_one(value(1, 1));
    write_one(fetch_add(1));
    write_one(fence_behind(7));
    write_one(value(1, 2));
    write_pair(put(1, 0, 8), signal_on(1, 64));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 2);
    CHECK(!channel_take(&fake_channel));
    CHECK(!channel_has_work(&fake_channel));
    fake_other.taken = 6;
    CHECK(!channel_has_work(&fake_channel));
    CHECK(!channel_take(&fake_channel));
    fake_other.taken = 7;
    CHECK(channel_has_work(&fake_channel)); /* though it has not looked itself */
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 6);
    CHECK_EQ(fake_requests, 4);
    for (int i = 0; i < 4; i++)
        CHECK(fake_request[i].flags & TRANSPORT_LOOSE);
    CHECK_EQ(fake_request[0].epoch, fake_request[1].epoch);
    CHECK_EQ(fake_request[2].epoch, fake_request[1].epoch + 1);
    CHECK_EQ(fake_request[3].epoch, fake_request[2].epoch);
    fake_end(0, GSHMEM_OK);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 3); /* the fence needs no end of its own */

    atomic_fetch_add(&fake_fences, 1); /* one of the host's */
    write_one(value(1, 3));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_request[2].epoch, fake_request[1].epoch + 1);

    fake_begin(); /* a context of one channel */
    fake_channel.other[0] = NULL;
    write_one(fence_behind(1000));
    write_one(answered(fence_behind(1000), 3, 4));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_done, 2);
    CHECK_EQ(fake_response[3].answer, 4 << 8);
    CHECK_EQ(fake_requests, 0);
}

/* Where channels of the context, or the host's requests, are another lane's, a fence waits until
 * what was before it there is complete. Until then its channel says that it has to be looked at
 * again: nobody wakes its proxy when that changes. */
static void test_crossing(void)
{
    struct gshmem_host_operations host = {.issued = 4, .done = 3};
    uint64_t far_done = 6 | GSHMEM_DONE_FAILED;
    enum { LIMIT = 1000 };
    char text[240];

    fake_begin();
    fake_channel.other[0] = NULL;
    fake_channel.far[0] = &far_done;
    fake_channel.crosses = true;
    write_one(value(1, 1));
    write_one(fence_behind(7));
    write_one(value(1, 2));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 1);
    for (int i = 0; i < 3; i++) {
        CHECK(!channel_take(&fake_channel));
        CHECK(channel_waits_for_lane(&fake_channel));
        CHECK(channel_has_work(&fake_channel));
        CHECK_EQ(fake_tail, 1);
    }
    far_done = 7 | GSHMEM_DONE_FAILED;
    CHECK(channel_take(&fake_channel));
    CHECK(!channel_waits_for_lane(&fake_channel));
    CHECK_EQ(fake_tail, 3);
    CHECK_EQ(fake_request[1].epoch, fake_request[0].epoch + 1);
    CHECK(!channel_take(&fake_channel));

    fake_begin(); /* what the host issues while a fence waits is not waited for, the next fence is */
    fake_channel.host = &host;
    fake_channel.crosses = true;
    write_one(fence_behind(0));
    write_one(fence_behind(0));
    CHECK(!channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 0);
    host.issued = 5;
    CHECK(!channel_take(&fake_channel));
    CHECK(channel_waits_for_lane(&fake_channel));
    CHECK(!channel_overdue(&fake_channel, LIMIT, LIMIT, text, sizeof text));
    CHECK(channel_overdue(&fake_channel, 2 * LIMIT, LIMIT, text, sizeof text));
    CHECK_HAS(text, "a fence in a kernel");
    host.done = 4;
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 1);
    CHECK(!channel_take(&fake_channel));
    CHECK(channel_waits_for_lane(&fake_channel));
    CHECK_EQ(fake_tail, 1);
    host.done = 5;
    CHECK(channel_take(&fake_channel));
    CHECK(!channel_waits_for_lane(&fake_channel));
    CHECK_EQ(fake_tail, 2);

    fake_begin(); /* both kinds of channels */
    fake_other.taken = 4;
    fake_channel.far[1] = &far_done;
    fake_channel.crosses = true;
    write_one((struct gshmem_command){.kind = GSHMEM_COMMAND_FENCE, .address = 5, .local = 7});
    CHECK(!channel_take(&fake_channel));
    CHECK(!channel_has_work(&fake_channel));
    fake_other.taken = 5;
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_tail, 1);
}

/* The GPU is flushed before that is said, and a failure of it is. */
static void test_flush(void)
{
    const struct gshmem_command flush = {.kind = GSHMEM_COMMAND_FLUSH};

    fake_begin();
    write_one(put(1, 0, 8));
    write_one(answered(flush, 5, 6));
    CHECK_EQ(fake_flushes, 0);
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_flushes, 1);
    CHECK_EQ(fake_response[5].answer, 6 << 8); /* though the put is under way */
    fake_flush_status = GSHMEM_ERR_DEVICE;
    write_one(answered(flush, 5, 7));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_response[5].answer, 7 << 8 | GSHMEM_ERR_DEVICE);
    fake_flush_status = GSHMEM_OK;
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, 3);
}

/* A kernel asks when it may change the sources of its puts: not before the transport has read those of
 * the large ones before it, and before they are done. */
static void test_sources(void)
{
    const struct gshmem_command ask = {.kind = GSHMEM_COMMAND_SOURCES};

    fake_begin();
    write_one(answered(ask, 1, 1)); /* there is none */
    write_one(put(1, 0, 4096));     /* which the transport copies */
    write_one(fetch_add(1));
    write_one(value(1, 1));
    write_one(answered(ask, 1, 2));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_response[1].answer, 2 << 8);
    CHECK_EQ(fake_done, 1);
    write_one(put(1, 0, 4097));
    write_one(put(2, 0, 5000));
    write_one(answered(ask, 2, 3));
    write_pair(put(3, 0, 6000), signal_on(3, 64)); /* of which the question before it knows nothing */
    write_one(answered(ask, 3, 4));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(channel_sent(&fake_channel), 5);
    fake_request[4].sent(fake_request[4].tag);
    CHECK_EQ(fake_response[2].answer, 0);
    fake_request[3].sent(fake_request[3].tag);
    CHECK_EQ(fake_response[2].answer, 3 << 8); /* at once: nothing need be done for it */
    CHECK_EQ(fake_response[3].answer, 0);
    CHECK_EQ(fake_done, 1);
    fake_end(5, GSHMEM_ERR_PEER_DEAD); /* as a NIC does, which knows nothing but the end */
    CHECK_EQ(fake_response[3].answer, 4 << 8); /* the failure is the next quiet's */
    CHECK_EQ(channel_sent(&fake_channel), fake_ticket);
    while (fake_requests)
        fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, fake_ticket | GSHMEM_DONE_FAILED);
}

/* While a region of some kernel runs, requests may wait for more of them. */
static void test_sessions(void)
{
    const struct gshmem_command stop = {.kind = GSHMEM_COMMAND_SESSION};
    struct gshmem_command start = stop;

    start.type = 1;
    fake_begin();
    write_one(stop); /* which none has begun */
    write_one(put(1, 0, 8));
    write_one(start);
    write_one(start);
    write_one(put(1, 0, 8));
    write_one(value(1, 1));
    write_one(stop);
    write_one(fetch_add(1));
    write_one(stop);
    write_one(put(1, 0, 8));
    write_one(fetch_add(1));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_requests, 6);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(!!(fake_request[i].flags & TRANSPORT_HELD), i >= 1 && i <= 3);
    while (fake_requests)
        fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_done, fake_ticket);
}

struct bad {
    struct gshmem_command c;
    const char *part; /* of what is said */
};

/* What is wrong is said, answered, and does not reach the transport. */
static void test_refusals(void)
{
    struct gshmem_command c[24];
    const char *said[24];
    int n = 0;

#define BAD(command, part)                                                                         \
    do {                                                                                           \
        c[n] = command;                                                                            \
        said[n++] = part;                                                                          \
    } while (0)
    BAD(put(FAKE_PES, 0, 8), "put in a kernel with PE 4: the job has PEs 0..3");
    BAD(put(GSHMEM_COMMAND_PE_MAX, 0, 8), "PE 16777215");
    BAD(put(0, FAKE_BYTES - 8, 16), "put with PE 0");
    BAD(put(0, 8, UINT64_MAX), "put");
    BAD(value(0, 1), "no element has 3 B");
    c[n - 1].type = 3;
    BAD(value(0, 1), "p in a kernel");
    c[n - 1].type = 0;
    BAD(signal_on(0, 4), "signal in a kernel");
    BAD(signal_on(0, 0), "signal_op is 7");
    c[n - 1].amo = 7;
    BAD(fetch_add(0), "atomic_add in a kernel: 0x");
    c[n - 1].address += 4;
    BAD(fetch_add(0), "operation 9 on type");
    c[n - 1].amo = 9;
    BAD(fetch_add(0), "type 31 does not exist");
    c[n - 1].type = 31;
    BAD(fetch_add(0), "atomic_add with PE 0");
    c[n - 1].address += FAKE_BYTES;
    BAD(fetch(0, 0, 3), "no element has 3 B");
    BAD(fetch(0, FAKE_BYTES - 8, 16), "g with PE 0");
    BAD(fetch(FAKE_PES, 0, 8), "g in a kernel with PE 4");
    BAD(put(0, 0, 8), "no memory at its local address 0x10");
    c[n - 1].local = 16;
    BAD(((struct gshmem_command){.kind = 0}), "kind 0");
    BAD(((struct gshmem_command){.kind = GSHMEM_COMMAND_RESULT}), "kind 6");
    BAD(((struct gshmem_command){.kind = GSHMEM_COMMAND_REFUSE, .type = GSHMEM_COMMAND_GET,
                                 .size = (uint64_t)-5}),
        "get in a kernel with PE -5");
    BAD(((struct gshmem_command){.kind = GSHMEM_COMMAND_REFUSE_WAIT, .amo = GSHMEM_WAIT_ANY, .local = 9}),
        "wait_until_any in a kernel: cmp is 9");
    BAD(((struct gshmem_command){.kind = GSHMEM_COMMAND_REFUSE_WAIT, .amo = 15, .local = 1, .size = 2}),
        "a wait in a kernel: indices is NULL");
#undef BAD
    fake_begin();
    log_set_level(LOG_NONE);
    for (int i = 0; i < n; i++) {
        const char *text;
        write_one(answered(c[i], (uint32_t)i, 200));
        CHECK(channel_take(&fake_channel));
        CHECK_EQ(fake_response[i].answer >> 8, 200);
        gshmem_status_t status = gshmem_last_error(&text);
        CHECK_EQ(fake_response[i].answer & 255, status);
        CHECK(status != GSHMEM_OK);
        CHECK_HAS(text, said[i]);
        CHECK_EQ(fake_done, i + 1);
    }
    CHECK_EQ(fake_requests, 0);
    log_set_level(LOG_WARN);
}

/* Where a pair does not fit together, its parts are commands of their own. */
static void test_bad_pairs(void)
{
    fake_begin();
    log_set_level(LOG_NONE);
    write_pair(answered(put(0, 0, 8), 1, 9), answered(put(1, 0, 8), 2, 9));
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_response[1].answer, 9 << 8 | GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(fake_requests, 1);
    fake_end(0, GSHMEM_OK);
    CHECK_EQ(fake_response[2].answer, 9 << 8);
    write_pair(put(0, 0, 8), signal_on(FAKE_PES, 0)); /* the put says which PE */
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_requests, 1);
    CHECK_EQ(fake_request[0].bytes, 8);
    CHECK_EQ(fake_request[0].pe, 0);
    fake_end(0, GSHMEM_OK);
    struct gshmem_command get = put(0, 0, 8);
    get.kind = GSHMEM_COMMAND_GET;
    get.more = 1; /* nothing belongs to a get, and it waits for nothing */
    write_one(get);
    CHECK(channel_take(&fake_channel));
    CHECK_EQ(fake_done_position(), 5);
    log_set_level(LOG_WARN);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* All bits random, or a good command with a few of them turned. */
static struct gshmem_slot random_slot(void)
{
    struct gshmem_command good[] = {put(1, 64, 100), value(2, 5), signal_on(3, 64), fetch_add(0),
                                    fence_behind(9)};
    struct gshmem_slot slot = gshmem_command_encode(&good[random64() % 5]);

    if (random64() % 4 == 0)
        slot = gshmem_put_signal_encode(&good[0], &good[2]);

    for (uint64_t i = random64() % 4; i > 0; i--)
        slot.word[random64() % 4] ^= UINT64_C(1) << random64() % 64;
    for (int i = 0; i < 4 && random64() % 2; i++)
        slot.word[random64() % 4] = random64();
    return slot;
}

static uint32_t tag_of(uint64_t asked)
{
    return (uint32_t)(1 + asked / GSHMEM_RESPONSES % 255);
}

/* Whatever is in the slots: each is taken, each that asks is answered, and what reaches the transport
 * is inside (fake_post looks). */
static void test_garbage(void)
{
    uint64_t written = 0, asked = 0;

    fake_begin();
    log_set_level(LOG_NONE);
    for (int round = 0; round < 200000; round++) {
        while (gshmem_channel_has_room(&fake_device.ring, written + 1) && random64() % 3) {
            struct gshmem_slot slot = random_slot();
            struct gshmem_command c = gshmem_command_decode(slot);
            if (c.responds) {
                c.response = (uint32_t)(asked % GSHMEM_RESPONSES);
                c.tag = tag_of(asked);
                /* who had this place before was answered long ago */
                if (asked >= GSHMEM_RESPONSES)
                    CHECK_EQ(fake_response[c.response].answer >> 8, tag_of(asked - GSHMEM_RESPONSES));
                asked++;
                slot = gshmem_command_encode(&c);
            }
            gshmem_channel_write(&fake_device.ring, written++, slot, 1);
        }
        fake_room = (int)(random64() % 4);
        channel_take(&fake_channel);
        while (fake_requests && random64() % 4)
            fake_end((int)(random64() % (uint64_t)fake_requests),
                     random64() % 8 ? GSHMEM_OK : GSHMEM_ERR_TRANSPORT);
        CHECK(fake_done_position() <= fake_tail && fake_tail <= written);
    }
    fake_room = 1 << 30;
    for (int i = 0; i < 2 * FAKE_SLOTS; i++) {
        channel_take(&fake_channel);
        while (fake_requests)
            fake_end(0, GSHMEM_OK);
        if (i == FAKE_SLOTS) { /* the last may wait for its other half */
            struct gshmem_slot slot = gshmem_command_encode(&(struct gshmem_command){.kind = 0});
            gshmem_channel_write(&fake_device.ring, written++, slot, 1);
        }
    }
    CHECK_EQ(fake_done_position(), written);
    for (uint64_t i = asked - GSHMEM_RESPONSES; i < asked; i++)
        CHECK_EQ(fake_response[i % GSHMEM_RESPONSES].answer >> 8, tag_of(i));
    CHECK(written > 100000 && asked > 10000);
    log_set_level(LOG_WARN);
}

/* The watchdog speaks once each time that nothing moves, and names the command that is first. */
static void test_overdue(void)
{
    enum { LIMIT = 1000 };
    char text[240] = "";

    fake_begin();
    CHECK(!channel_overdue(&fake_channel, 10 * LIMIT, LIMIT, text, sizeof text)); /* nothing there */
    write_one(put(2, 64, 32));
    write_one(value(3, 7));
    channel_take(&fake_channel);
    CHECK(!channel_overdue(&fake_channel, 11 * LIMIT - 1, LIMIT, text, sizeof text));
    CHECK(channel_overdue(&fake_channel, 11 * LIMIT, LIMIT, text, sizeof text));
    CHECK(strstr(text, "put in a kernel, to PE 2, at position 0"));
    CHECK(strstr(text, "2 positions are posted"));
    CHECK(!strstr(text, "more wait"));
    CHECK(!channel_overdue(&fake_channel, 20 * LIMIT, LIMIT, text, sizeof text)); /* said already */
    fake_end(0, GSHMEM_OK);
    channel_take(&fake_channel);
    CHECK(!channel_overdue(&fake_channel, 21 * LIMIT, LIMIT, text, sizeof text)); /* it has moved */
    write_one(put(1, 64, 32));
    CHECK(channel_overdue(&fake_channel, 22 * LIMIT, LIMIT, text, sizeof text));
    CHECK(strstr(text, "p in a kernel, to PE 3, at position 1"));
    CHECK(strstr(text, "more wait"));
    fake_end(0, GSHMEM_OK);
    channel_take(&fake_channel);
    fake_end(0, GSHMEM_OK);
    fake_room = 0; /* nothing is posted, and something is due */
    write_one(put(1, 64, 32));
    channel_take(&fake_channel);
    CHECK(!channel_overdue(&fake_channel, 30 * LIMIT, LIMIT, text, sizeof text));
    channel_take(&fake_channel);
    CHECK(channel_overdue(&fake_channel, 31 * LIMIT, LIMIT, text, sizeof text));
    CHECK(strstr(text, "put in a kernel, to PE 1, at position 3"));
    CHECK(strstr(text, "0 positions are posted and not done, more wait"));
    fake_room = 1 << 30;
}

/* A channel that has a command when it is looked at for the first time counts from then. */
static void test_overdue_at_first(void)
{
    enum { LIMIT = 1000 };
    char text[240] = "";

    fake_begin();
    write_one(put(2, 64, 32));
    channel_take(&fake_channel);
    CHECK(!channel_overdue(&fake_channel, 10 * LIMIT, LIMIT, text, sizeof text));
    CHECK(!channel_overdue(&fake_channel, 11 * LIMIT - 1, LIMIT, text, sizeof text));
    CHECK(channel_overdue(&fake_channel, 11 * LIMIT, LIMIT, text, sizeof text));
    fake_end(0, GSHMEM_OK);
}

int main(void)
{
    test_out_of_order();
    test_back_pressure();
    test_records();
    test_put_signal();
    test_packed_fields();
    test_packed();
    test_packed_mistakes();
    test_atomics();
    test_fetches();
    test_failures();
    test_unsent();
    test_raises();
    test_fence();
    test_crossing();
    test_flush();
    test_sources();
    test_sessions();
    test_refusals();
    test_bad_pairs();
    test_garbage();
    test_overdue();
    test_overdue_at_first();
    return 0;
}
