/* The TCP transport without a runtime: requests that are not loose keep their order. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "../../device/device.h"
#include "transport/batch.h"
#include "pair.h"

static void progress(int which)
{
    int events;

    CHECK_EQ(transport_tcp.progress(pe[which].t, &events), GSHMEM_OK);
}

/* ---- A device of PE 1's ---- */

static uint64_t started, over; /* copies: over when the test says */
static char device_memory[2 * TRANSPORT_COPIED];

static void *allocate(struct device *d, enum device_memory kind, size_t bytes)
{
    (void)d, (void)kind;
    return calloc(1, bytes);
}

static void release(struct device *d, enum device_memory kind, void *at)
{
    (void)d, (void)kind;
    free(at);
}

static gshmem_status_t copy_start(struct device *d, void *to, const void *from, size_t bytes, uint64_t *ticket)
{
    (void)d;
    memcpy(to, from, bytes);
    *ticket = ++started;
    return GSHMEM_OK;
}

static bool copy_done(struct device *d, uint64_t ticket, gshmem_status_t *status)
{
    (void)d;
    *status = GSHMEM_OK;
    return ticket <= over;
}

static int on_device(void *context, const void *at, uint64_t bytes)
{
    (void)context, (void)bytes;
    return (const char *)at >= device_memory && (const char *)at < device_memory + sizeof device_memory;
}

static void add_device(void)
{
    static const struct device_ops ops = {.size = sizeof ops, .allocate = allocate, .release = release,
                                          .copy_start = copy_start, .copy_done = copy_done};
    static struct device device = {&ops};
    struct transport_config *c = &((struct tcp *)pe[1].t)->config;

    started = over = 0;
    c->device = &device;
    c->on_device = on_device;
    c->staging = 1 << 20;
    c->segment[c->segments++] =
        (struct transport_segment){.base = device_memory, .bytes = sizeof device_memory, .of_device = true};
}

/* ---- Gets ---- */

/* A put behind a get of the same memory, and the signal of one: the get brings what was there before. Also where all
 * of them wait for a put to memory of the device's. */
static void puts_wait_for_gets(bool behind_copy)
{
    enum { BYTES = 6 << 20, LAST = BYTES - 8 };
    static char into[BYTES], zeros[BYTES];
    uint64_t value = 7;
    char records[2][BATCH_NUMBER_BYTES + 8];
    struct transport_request puts[5] = {
        {.kind = TRANSPORT_PUT, .pe = 1, .local = &value, .bytes = 8, .offset = LAST},
        {.kind = TRANSPORT_PUT, .pe = 1, .signal_op = GSHMEM_SIGNAL_SET, .signal_offset = LAST, .signal_value = 7},
        {.kind = TRANSPORT_ATOMIC, .pe = 1, .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .offset = LAST,
         .operand = 7},
        {.kind = TRANSPORT_BATCH, .each = TRANSPORT_PUT, .pe = 1, .local = records[0], .bytes = sizeof records[0],
         .offset = LAST - 80, .elements = 1, .element_bytes = 8},
        {.kind = TRANSPORT_BATCH, .each = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .pe = 1,
         .local = records[1], .bytes = sizeof records[1], .offset = LAST - 80, .elements = 1, .element_bytes = 8}};

    for (int i = 0; i < 2; i++) {
        batch_put_number(records[i], 10);
        memcpy(records[i] + BATCH_NUMBER_BYTES, &value, 8);
    }
    for (int i = 0; i < 5; i++) {
        begin();
        memset(into, 1, sizeof into);
        post(0, (struct transport_request){.kind = TRANSPORT_GET, .pe = 1, .local = into, .bytes = 8});
        settle(); /* the stream is there */
        if (behind_copy) {
            add_device();
            post(0, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 1, .segment = 1, .local = &value, .bytes = 8});
        }
        post(0, (struct transport_request){.kind = TRANSPORT_GET, .pe = 1, .local = into, .bytes = BYTES});
        post(0, puts[i]);
        for (int rounds = 0; rounds < 200; rounds++)
            progress(1); /* which reads both before PE 0 has taken what it asked for */
        CHECK_EQ(started, behind_copy);
        over = started;
        for (int rounds = 0; rounds < 200; rounds++)
            progress(1);
        settle();
        CHECK(memcmp(into, zeros, BYTES) == 0);
        CHECK(memcmp(segment_of(1) + LAST, &value, 8) == 0);
        CHECK_EQ(not_ok, 0);
        close_pe(0);
        close_pe(1);
    }
}

static int is_imported(void *context, uint64_t offset, uint64_t bytes)
{
    (void)context;
    return offset + bytes <= SEGMENT;
}

/* Elements of other memory than that of a get do not wait until the get has been sent; those of the same do. imported:
 * nearly all of the segment is imported memory, behind what it has of its own. */
static void batches_pass_gets(bool imported)
{
    static const uint64_t own = 4096;
    enum { BYTES = 6 << 20, GOT = BYTES - 4096 };
    static char into[GOT], zeros[GOT];
    const uint64_t value = 7;
    char records[2][BATCH_NUMBER_BYTES + 8];

    for (int i = 0; i < 2; i++) {
        batch_put_number(records[i], (i ? GOT : BYTES) / 8 - 1); /* the second is the last that is got */
        memcpy(records[i] + BATCH_NUMBER_BYTES, &value, 8);
    }
    begin();
    if (imported) {
        struct transport_segment *s = &((struct tcp *)pe[1].t)->config.segment[0];
        s->there = &own;
        s->imported = is_imported;
    }
    memset(into, 1, sizeof into);
    post(0, (struct transport_request){.kind = TRANSPORT_GET, .pe = 1, .local = into, .bytes = 8});
    settle(); /* the stream is there */
    post(0, (struct transport_request){.kind = TRANSPORT_GET, .pe = 1, .local = into, .bytes = GOT});
    post(0, (struct transport_request){.kind = TRANSPORT_BATCH, .each = TRANSPORT_PUT, .pe = 1, .local = records[0],
                                       .bytes = sizeof records, .elements = 2, .element_bytes = 8});
    for (int rounds = 0; rounds < 200; rounds++)
        progress(1); /* which reads both before PE 0 has taken what it asked for */
    CHECK(memcmp(segment_of(1) + BYTES - 8, &value, 8) == 0);
    CHECK(memcmp(segment_of(1) + GOT - 8, zeros, 8) == 0);
    settle();
    CHECK(memcmp(into, zeros, GOT) == 0);
    CHECK(memcmp(segment_of(1) + GOT - 8, &value, 8) == 0);
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* A batch that waits for a put from memory of the device's has been copied when post has returned. */
static void batch_behind_copy(void)
{
    enum { RECORD = BATCH_NUMBER_BYTES + 8 };
    uint64_t value = 7;
    char records[2 * RECORD];

    begin();
    post(1, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 0, .local = &value, .bytes = 8, .offset = 8});
    settle();
    add_device();
    for (int i = 0; i < 2; i++) {
        batch_put_number(records + i * RECORD, (uint32_t)(20 + i));
        memcpy(records + i * RECORD + BATCH_NUMBER_BYTES, &value, 8);
    }
    memset(segment_of(0), 0, 400);
    post(1, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 0, .local = device_memory,
                                       .bytes = sizeof device_memory, .offset = sizeof device_memory});
    post(1, (struct transport_request){.kind = TRANSPORT_BATCH, .each = TRANSPORT_PUT, .pe = 0, .local = records,
                                       .bytes = sizeof records, .elements = 2, .element_bytes = 8});
    memset(records, -1, sizeof records);
    over = UINT64_MAX;
    settle();
    CHECK(memcmp(segment_of(0) + 160, &value, 8) == 0 && memcmp(segment_of(0) + 168, &value, 8) == 0);
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

/* The memory of a signal goes while the signal is on its way there: its buffer comes back. */
static void signal_to_memory_that_goes(void)
{
    const struct transport_request signal = {.kind = TRANSPORT_PUT, .pe = 1, .signal_op = GSHMEM_SIGNAL_SET,
                                             .signal_segment = 1, .signal_offset = 64, .signal_value = 7};
    struct tcp *t;

    begin();
    post(0, small_put(1));
    settle();
    t = (struct tcp *)pe[1].t;
    add_device();
    post(0, signal);
    for (int rounds = 0; rounds < 200 && !started; rounds++)
        drive();
    CHECK_EQ(started, 1);
    CHECK(staging_busy(&t->staging));
    t->config.segment[1].bytes = 0;
    drive();
    over = started;
    settle();
    for (int rounds = 0; rounds < 200; rounds++)
        drive();
    CHECK(!staging_busy(&t->staging));
    CHECK_EQ(t->staging.given, 1);
    close_pe(0);
    close_pe(1);
}

/* A small get into memory of the device's travels alone, since a copy brings its data there. */
static void small_get_for_device(void)
{
    static char into[8];
    uint64_t value = 7;

    begin();
    post(1, small_put(0));
    settle();
    add_device();
    memset(device_memory, 0, sizeof device_memory);
    memcpy(segment_of(0) + 64, &value, 8);
    over = UINT64_MAX;
    for (int i = 0; i < 2; i++) /* the first is for memory of the host */
        post(1, (struct transport_request){.kind = TRANSPORT_GET,
                                           .flags = TRANSPORT_MORE | TRANSPORT_HELD,
                                           .pe = 0,
                                           .local = i ? device_memory + 8 : into,
                                           .offset = 64,
                                           .bytes = 8});
    settle();
    CHECK_EQ(started, 1);
    CHECK(memcmp(device_memory + 8, &value, 8) == 0 && memcmp(into, &value, 8) == 0);
    CHECK_EQ(not_ok, 0);
    close_pe(0);
    close_pe(1);
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    puts_wait_for_gets(false);
    puts_wait_for_gets(true);
    batches_pass_gets(false);
    batches_pass_gets(true);
    batch_behind_copy();
    signal_to_memory_that_goes();
    small_get_for_device();
    return 0;
}
