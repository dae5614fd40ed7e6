#define _GNU_SOURCE
#include "device/host/blocks/events.h"

#include <stdlib.h>

/* Of the process, as the list of launches is. */
static struct {
    _Atomic(const struct kernel_events *) to; /* NULL: nobody listens */
    atomic_uint_fast64_t launches;            /* told so far */
} events;

#pragma GCC visibility push(default)
void gshmem_host_tell_events(const struct kernel_events *to);
uint64_t gshmem_host_place(void);
#pragma GCC visibility pop

static const struct kernel_events *listener(void)
{
    /* acquire: pairs with the release in gshmem_host_tell_events */
    return atomic_load_explicit(&events.to, memory_order_acquire);
}

void gshmem_host_tell_events(const struct kernel_events *to)
{
    /* release: what the functions use is there */
    atomic_store_explicit(&events.to, to, memory_order_release);
}

static uint64_t block_number(const struct block *b)
{
    const dim3 size = b->grid->size;

    return b->index.x + (uint64_t)size.x * (b->index.y + (uint64_t)size.y * b->index.z);
}

static uint64_t place_of(const struct thread *t)
{
    return kernel_place(t->block->grid->launch, block_number(t->block),
                        (unsigned)(t - t->block->threads));
}

/* 0: not of a kernel, or of one that is not told. */
uint64_t gshmem_host_place(void)
{
    const struct thread *self = thread_self();

    return self && self->block->grid->launch ? place_of(self) : 0;
}

/* ---- Launches and blocks ---- */

void events_grid_begins(struct grid *grid)
{
    const struct kernel_events *to = listener();
    const uint64_t most = (UINT64_C(1) << KERNEL_LAUNCH_BITS) - 1;

    grid->launch = 0;
    if (!to)
        return;
    grid->launch = (uint32_t)(
        atomic_fetch_add_explicit(&events.launches, 1, memory_order_relaxed) % most + 1);
    to->tell(KERNEL_BEGINS, 0, kernel_place_of_launch(grid->launch), grid->name, grid->blocks);
}

void events_grid_ends(const struct grid *grid)
{
    const struct kernel_events *to = grid->launch ? listener() : NULL;

    if (to)
        to->tell(KERNEL_ENDS, 0, kernel_place_of_launch(grid->launch), grid->name, 0);
}

/* NULL also of a launch with so many blocks that it is told as a whole. */
static const struct kernel_events *listener_of(const struct block *b)
{
    return b->grid->launch && b->grid->blocks <= KERNEL_BLOCKS_MOST ? listener() : NULL;
}

static void tell_block(const struct block *b, enum kernel_event what, uint64_t ticks)
{
    const struct kernel_events *to = listener_of(b);

    if (to)
        to->tell(what, ticks, kernel_place(b->grid->launch, block_number(b), 0), b->grid->name,
                 b->size);
}

/* While a thread waits there is time to tell of the wait before. */
static void tell_past(struct block *b)
{
    const struct kernel_events *to = b->past.place ? listener_of(b) : NULL;

    if (to)
        to->waited(&b->past);
    b->past.place = 0;
}

void events_block_begins(const struct block *block)
{
    tell_block(block, KERNEL_BLOCK_BEGINS, 0);
}

void events_block_ends(struct block *block)
{
    tell_past(block);
    tell_block(block, KERNEL_BLOCK_ENDS, 0);
}

/* ---- Waits ---- */

/* A wait of so many polls is told while it lasts, a shorter one when it is over: to tell it takes
 * longer than many waits. */
enum { POLLS_UNTOLD = 64 };

static void tell_idle(struct block *b)
{
    if (!b->idle || b->idle_traced)
        return;
    b->idle_traced = true;
    tell_block(b, KERNEL_BLOCK_IDLE, b->idle_since);
}

static void block_goes_on(struct block *b, uint64_t ticks)
{
    tell_idle(b);
    if (b->idle)
        tell_block(b, KERNEL_BLOCK_BUSY, ticks);
    b->idle = false;
}

/* From now on, if all threads of the block that have not ended wait for others of it, or for
 * PEs. */
static bool becomes_idle(const struct block *b)
{
    return !b->idle && b->waits + b->parked == b->live;
}

static void block_may_be_idle(struct block *b, uint64_t ticks)
{
    if (!becomes_idle(b))
        return;
    b->idle = true;
    b->idle_traced = false;
    b->idle_since = ticks;
}

static void tell_long_wait(struct thread *self, const struct kernel_events *to)
{
    const struct kernel_wait lasts = {.place = place_of(self),
                                      .address = self->wait_at,
                                      .by = self->wait_by,
                                      .begin = self->wait_since};

    self->wait_untold = 0;
    to->waited(&lasts);
    tell_idle(self->block);
}

static void wait_begins(struct thread *self, const struct kernel_events *to, uint64_t address,
                        uint64_t since, uint64_t now)
{
    self->waits = true;
    self->wait_untold = POLLS_UNTOLD;
    self->wait_at = address;
    self->wait_by = address ? to->awaited_by(address) : 0;
    self->wait_since = since;
    self->wait_last = now;
    self->block->waits++;
    block_may_be_idle(self->block, now);
}

static void keep_short_wait(struct thread *self, uint64_t end)
{
    struct block *b = self->block;
    const bool tells_idle = b->idle && !b->idle_traced;

    tell_past(b);
    b->past = (struct kernel_wait){.place = place_of(self),
                                   .address = self->wait_at,
                                   .by = self->wait_by,
                                   .begin = self->wait_since,
                                   .end = end,
                                   .idle = tells_idle ? b->idle_since : 0};
    if (tells_idle)
        b->idle = false;
}

static void wait_ends_at(struct thread *self, uint64_t ticks)
{
    const struct kernel_events *to = listener();
    struct block *b = self->block;

    self->waits = false;
    b->waits--;
    if (to && self->wait_untold)
        keep_short_wait(self, to->ticks());
    else if (to)
        to->tell(KERNEL_WAIT_ENDS, ticks, place_of(self), NULL, 0);
    block_goes_on(b, ticks);
    self->wait_at = 0;
    self->wait_untold = 0;
}

void events_wait_ends(struct thread *self)
{
    wait_ends_at(self, 0);
}

void events_wait_was_over(struct thread *self)
{
    wait_ends_at(self, self->wait_last);
}

void events_thread_resumed(struct thread *self)
{
    const struct kernel_events *to = listener();

    if (!to)
        return;
    if (self->wait_untold > 1 && !becomes_idle(self->block)) {
        self->wait_untold--; /* without a look at the clock, which takes as long as a poll */
        return;
    }
    self->wait_last = to->ticks();
    block_may_be_idle(self->block, self->wait_last);
    if (self->wait_untold == 1)
        tell_long_wait(self, to);
    else if (!self->wait_untold)
        tell_idle(self->block);
    else
        self->wait_untold--;
}

/* A wait in a kernel that our compiler has seen. */
void gshmem_host_wait_begins(const void *address)
{
    struct thread *self = thread_self();
    const struct kernel_events *to = self ? listener_of(self->block) : NULL;

    if (self && self->waits) /* it has failed, and its thread goes on */
        events_wait_was_over(self);
    if (!to)
        return;
    const uint64_t now = to->ticks();
    wait_begins(self, to, (uint64_t)(uintptr_t)address, now, now);
    tell_past(self->block);
}

/* In kernels made from PTX a wait is a loop of loads like any other. It is known by this: the
 * thread was asked to let others run at two loads of the same few words in a row, and other PEs, or
 * the proxy, write there. It is over when the thread does something else; it ended when the thread
 * was last resumed. */
enum { NEARBY_BYTES = 64 };

static bool is_nearby(uint64_t a, uint64_t b)
{
    return a - b < NEARBY_BYTES || b - a < NEARBY_BYTES;
}

void events_polls(struct thread *self, uint64_t address)
{
    const struct kernel_events *to = listener_of(self->block);

    if (!to)
        return;
    const bool again = self->wait_at && is_nearby(address, self->wait_at);
    if (self->waits && !again && !self->wait_strays) {
        self->wait_strays = true; /* it may have looked whether the job has failed */
        return;
    }
    self->wait_strays = false;
    if (self->waits && again)
        return;
    if (self->waits)
        events_wait_was_over(self);
    if (again) {
        wait_begins(self, to, address, self->wait_since, self->wait_since);
        tell_long_wait(self, to);
        return;
    }
    self->wait_at = to->awaited_by(address) ? address : 0;
    self->wait_since = to->ticks();
}

/* ---- Ranges of the program ---- */

static void tell_range(enum kernel_event what, const char *name)
{
    const struct thread *self = thread_self();
    const struct kernel_events *to = self ? listener_of(self->block) : NULL;

    if (to)
        to->tell(what, 0, place_of(self), name, 0);
}

void gshmem_host_range_begins(const char *name)
{
    tell_range(KERNEL_RANGE_BEGINS, name ? name : "(no name)");
}

void gshmem_host_range_ends(void)
{
    tell_range(KERNEL_RANGE_ENDS, NULL);
}

/* ---- The host's threads ---- */

static void tell_host(enum kernel_event what)
{
    const struct kernel_events *to = listener();

    if (to)
        to->tell(what, 0, 0, NULL, 0);
}

void events_host_waits(void)
{
    tell_host(KERNEL_HOST_WAITS);
}

void events_host_goes_on(void)
{
    tell_host(KERNEL_HOST_GOES_ON);
}
