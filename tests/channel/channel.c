/* The channel under many producers: every command arrives whole, once, in its producer's order, with
 * the plain memory it publishes. Under ThreadSanitizer that memory makes a missing release or acquire
 * a reported race. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/channel.h"
#include "../check.h"

enum { PRODUCERS = 4, EACH = 20000, SLOTS_LOG2 = 4, SLOTS = 1 << SLOTS_LOG2 };

static _Alignas(64) uint64_t ring[SLOTS * GSHMEM_SLOT_WORDS];
static _Alignas(64) uint64_t tail;
static _Alignas(64) uint64_t ticket;
static _Alignas(64) uint64_t tail_copy;

static const struct gshmem_channel channel = {
    .ring = ring,
    .tail = &tail,
    .ticket = &ticket,
    .tail_copy = &tail_copy,
    .slots = SLOTS,
    .slots_log2 = SLOTS_LOG2,
};

/* What a command publishes: not atomic, and read by the consumer without asking anyone. */
static uint64_t payload[PRODUCERS][EACH];

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

static void push(struct gshmem_slot slot)
{
    uint64_t position = gshmem_channel_take(&channel, 1);

    while (!gshmem_channel_has_room(&channel, position + 1))
        sched_yield();
    gshmem_channel_write(&channel, position, slot, 1);
}

static void *produce(void *argument)
{
    uint64_t who = (uint64_t)(uintptr_t)argument;

    for (uint64_t i = 0; i < EACH; i++) {
        payload[who][i] = mix(who << 32 | i);
        push((struct gshmem_slot){{who, i, ~i, mix(i)}});
    }
    return NULL;
}

static void consume_one(uint64_t position, uint64_t *expected)
{
    const uint64_t mask = ~GSHMEM_SLOT_PHASE;
    struct gshmem_slot slot;

    while (!gshmem_channel_read(ring, position, SLOTS_LOG2, &slot))
        sched_yield();
    gshmem_channel_give_back(&tail, position + 1);

    uint64_t who = slot.word[0], i = slot.word[1];
    CHECK(who < PRODUCERS);
    CHECK_EQ(i, expected[who]);
    CHECK_EQ(slot.word[2], ~i & mask);
    CHECK_EQ(slot.word[3], mix(i) & mask);
    CHECK_EQ(payload[who][i], mix(who << 32 | i));
    expected[who]++;
}

static void test_many_producers(void)
{
    uint64_t expected[PRODUCERS] = {0};
    pthread_t thread[PRODUCERS];

    for (uintptr_t p = 0; p < PRODUCERS; p++)
        CHECK_EQ(pthread_create(&thread[p], NULL, produce, (void *)p), 0);
    for (uint64_t position = 0; position < (uint64_t)PRODUCERS * EACH; position++)
        consume_one(position, expected);
    for (int p = 0; p < PRODUCERS; p++) {
        pthread_join(thread[p], NULL);
        CHECK_EQ(expected[p], EACH);
    }
}

/* A slot is there only when all four words are, whichever comes last. */
static void test_partial_slots(void)
{
    enum { LOG2 = 1 };
    _Alignas(32) uint64_t words[2 * GSHMEM_SLOT_WORDS];
    struct gshmem_slot slot;

    for (uint64_t position = 0; position < 6; position++) {
        uint64_t phase = gshmem_slot_phase(position, LOG2);
        for (unsigned written = 0; written < 16; written++) {
            for (int w = 0; w < 4; w++) {
                bool now = written >> w & 1;
                words[(position & 1) * 4 + (unsigned)w] =
                    (now ? phase : phase ^ GSHMEM_SLOT_PHASE) | (now ? position : 99);
            }
            CHECK_EQ(gshmem_channel_read(words, position, LOG2, &slot), written == 15);
        }
        CHECK_EQ(slot.word[0], position);
        CHECK_EQ(slot.word[3], position);
    }
}

static void test_full(void)
{
    uint64_t small[2 * GSHMEM_SLOT_WORDS] = {0}, real_tail = 0, counter = 0, copy = 0;
    struct gshmem_channel c = {small, &real_tail, &counter, &copy, 2, 1};

    CHECK(gshmem_channel_has_room(&c, 1));
    CHECK(gshmem_channel_has_room(&c, 2));
    CHECK(!gshmem_channel_has_room(&c, 3));
    gshmem_channel_give_back(&real_tail, 1);
    CHECK(gshmem_channel_has_room(&c, 3));
    CHECK_EQ(copy, 1);
    CHECK(!gshmem_channel_has_room(&c, 4));
}

int main(void)
{
    test_partial_slots();
    test_full();
    test_many_producers();
    return 0;
}
