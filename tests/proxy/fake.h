/* A channel whose commands go to a transport that does as the test says: takes requests or has no
 * room for them, and ends them in any order. */
#ifndef GSHMEM_TESTS_FAKE_H
#define GSHMEM_TESTS_FAKE_H

#include <stdbool.h>
#include <string.h>

#include "gshmem.h"
#include "gshmem/device/command.h"
#include "runtime/base/log.h"
#include "runtime/proxy/channel.h"
#include "../check.h"

#ifndef FAKE_LOG2 /* or as the test has it */
#define FAKE_LOG2 4
#endif

enum { FAKE_SLOTS = 1 << FAKE_LOG2, FAKE_PES = 4, FAKE_BYTES = 1 << 16, FAKE_MOST = 64 };

static _Alignas(64) unsigned char fake_heap[FAKE_BYTES]; /* this PE's */
static _Alignas(64) uint64_t fake_ring[FAKE_SLOTS * GSHMEM_SLOT_WORDS];
static uint64_t fake_ticket, fake_tail, fake_tail_copy, fake_done, fake_failed;
static struct gshmem_response fake_response[GSHMEM_RESPONSES];
static struct passage fake_passage[FAKE_SLOTS];

/* What the transport has been given, and not ended. */
static struct transport_request fake_request[FAKE_MOST];
static int fake_requests;
static _Atomic uint32_t fake_fences;
static int fake_room;                /* it takes this many more */
static gshmem_status_t fake_refusal; /* what post answers, if not 0 */
static bool fake_at_once;            /* it ends requests within post */

static gshmem_status_t fake_raised[FAKE_MOST];
static int fake_raises;

static inline gshmem_status_t fake_aim(void *context, uint64_t mine, uint64_t bytes, int pe,
                                       const char *call, int *segment, uint64_t *offset)
{
    uint64_t at = mine - (uintptr_t)fake_heap;

    (void)context;
    CHECK(pe >= 0 && pe < FAKE_PES);
    if (at >= FAKE_BYTES || bytes > FAKE_BYTES - at)
        return fail_silently(GSHMEM_ERR_NOT_SYMMETRIC, "%s with PE %d", call, pe);
    *segment = 1;
    *offset = at;
    return GSHMEM_OK;
}

static inline gshmem_status_t fake_store(void *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memcpy(to, from, bytes);
    return GSHMEM_OK;
}

static inline bool fake_is_memory(void *context, uint64_t address, uint64_t bytes)
{
    uint64_t at = address - (uintptr_t)fake_heap;

    (void)context;
    return at < FAKE_BYTES && bytes <= FAKE_BYTES - at;
}

static inline gshmem_status_t fake_post(void *context, const struct transport_request *r)
{
    (void)context;
    if (fake_refusal)
        return fake_refusal;
    if (fake_room == 0)
        return TRANSPORT_FULL;
    fake_room--;
    CHECK(r->pe >= 0 && r->pe < FAKE_PES);
    CHECK(r->kind == TRANSPORT_PUT || r->kind == TRANSPORT_GET || r->kind == TRANSPORT_ATOMIC);
    CHECK(r->offset + r->bytes <= FAKE_BYTES);
    CHECK(!r->signal_op || r->signal_offset + 8 <= FAKE_BYTES);
    if (fake_at_once) {
        r->done(r->tag, GSHMEM_OK);
        return GSHMEM_OK;
    }
    CHECK(fake_requests < FAKE_MOST);
    fake_request[fake_requests++] = *r;
    return GSHMEM_OK;
}

static uint64_t fake_unsent_signal;
static gshmem_status_t fake_unsent_status;

static inline void fake_unsent(void *context, uint64_t signal, gshmem_status_t status)
{
    (void)context;
    fake_unsent_signal = signal;
    fake_unsent_status = status;
}

static int fake_flushes;
static gshmem_status_t fake_flush_status;

static inline gshmem_status_t fake_flush(void *context)
{
    (void)context;
    fake_flushes++;
    return fake_flush_status;
}

static inline void fake_raise(void *context, gshmem_status_t status,
                              const struct proxy_answer *then);

static struct proxy_way fake_way = {
    .n_pes = FAKE_PES,
    .heap_bytes = FAKE_BYTES,
    .heap_segment = 1,
    .fences = &fake_fences,
    .response = fake_response,
    .aim = fake_aim,
    .is_memory = fake_is_memory,
    .store = fake_store,
    .post = fake_post,
    .flush = fake_flush,
    .raise = fake_raise,
    .unsent = fake_unsent,
};

static inline void fake_raise(void *context, gshmem_status_t status,
                              const struct proxy_answer *then)
{
    (void)context;
    fake_raised[fake_raises++ % FAKE_MOST] = status;
    channel_answer(&fake_way, then);
}

static struct proxy_channel fake_channel;
static struct gshmem_device_channel fake_device;
static struct proxy_channel fake_other; /* of which the test says how far it has come */

static inline void fake_begin(void)
{
    memset(fake_ring, 0, sizeof fake_ring);
    memset(fake_response, 0, sizeof fake_response);
    memset(fake_passage, 0, sizeof fake_passage);
    memset(fake_heap, 0, sizeof fake_heap);
    fake_ticket = fake_tail = fake_tail_copy = fake_done = fake_failed = 0;
    fake_requests = fake_raises = 0;
    fake_unsent_signal = 0;
    fake_room = 1 << 30;
    fake_refusal = GSHMEM_OK;
    fake_at_once = false;
    fake_channel = (struct proxy_channel){
        .way = &fake_way,
        .ring = fake_ring,
        .slots_log2 = FAKE_LOG2,
        .passage = fake_passage,
        .tail = &fake_tail,
        .done = &fake_done,
        .failed = &fake_failed,
    };
    fake_way.heap = (uintptr_t)fake_heap;
    channel_begin(&fake_channel);
    fake_other = (struct proxy_channel){.taken = UINT64_MAX};
    fake_channel.other[0] = &fake_other;
    fake_fences = 0;
    fake_device = (struct gshmem_device_channel){
        .ring = {fake_ring, &fake_tail, &fake_ticket, &fake_tail_copy, FAKE_SLOTS, FAKE_LOG2},
        .done = &fake_done,
        .failed = &fake_failed,
    };
}

/* Writes the next slot, which must have room; returns its position. */
static inline uint64_t fake_write_slot(struct gshmem_slot slot)
{
    uint64_t position = gshmem_channel_take(&fake_device.ring, 1);

    CHECK(gshmem_channel_has_room(&fake_device.ring, position + 1));
    gshmem_channel_write(&fake_device.ring, position, slot, 1);
    return position;
}

static inline uint64_t fake_write(const struct gshmem_command *c)
{
    return fake_write_slot(gshmem_command_encode(c));
}

/* The transport ends the i-th of the requests that it has. */
static inline void fake_end(int i, gshmem_status_t status)
{
    struct transport_request r = fake_request[i];

    CHECK(i < fake_requests);
    memmove(&fake_request[i], &fake_request[i + 1],
            (size_t)(--fake_requests - i) * sizeof fake_request[0]);
    r.done(r.tag, status);
    channel_publish(&fake_channel);
}

static inline uint64_t fake_done_position(void)
{
    return fake_done & ~GSHMEM_DONE_FAILED;
}

#endif
