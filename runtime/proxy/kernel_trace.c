#include "runtime/proxy/kernel_trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/kernel_events.h"
#include "gshmem/device/state.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/teams/team.h"
#include "runtime/trace/trace.h"

/* ---- Memory that has a name ---- */

struct awaited_memory {
    uint64_t at;
    size_t bytes;
    const char *what;
    enum trace_awaited awaited;
};

static struct {
    pthread_mutex_t lock;
    struct awaited_memory *of;
    size_t n, room;
    atomic_uint changes;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

void kernel_trace_enter(const void *at, size_t bytes, enum trace_awaited awaited,
                        const char *what)
{
    if (!trace_is_on())
        return;
    pthread_mutex_lock(&memory.lock);
    if (memory.n == memory.room) {
        const size_t room = memory.room ? 2 * memory.room : 16;
        struct awaited_memory *of = realloc(memory.of, room * sizeof *of);
        if (of) {
            memory.of = of;
            memory.room = room;
        } else {
            log_warn("GSHMEM_TRACE: out of memory: some waits of kernels have no name");
        }
    }
    if (memory.n < memory.room)
        memory.of[memory.n++] =
            (struct awaited_memory){(uint64_t)(uintptr_t)at, bytes, what, awaited};
    atomic_fetch_add_explicit(&memory.changes, 1, memory_order_relaxed);
    pthread_mutex_unlock(&memory.lock);
}

void kernel_trace_forget(const void *at)
{
    pthread_mutex_lock(&memory.lock);
    for (size_t i = 0; i < memory.n; i++) {
        if (memory.of[i].at == (uint64_t)(uintptr_t)at) {
            memory.of[i] = memory.of[--memory.n];
            break;
        }
    }
    if (memory.n == 0) {
        free(memory.of);
        memory.of = NULL;
        memory.room = 0;
    }
    atomic_fetch_add_explicit(&memory.changes, 1, memory_order_relaxed);
    pthread_mutex_unlock(&memory.lock);
}

struct awaited_by {
    enum trace_awaited awaited;
    int only; /* the PE that is waited for; -1: any */
    const char *what;
};

/* What a thread has found last: it mostly waits for the same again. */
static _Thread_local struct {
    uint64_t address;
    unsigned changes; /* as they were + 1; 0: nothing was found yet */
    bool found;
    struct awaited_by by;
} looked_up;

static bool search_entered(uint64_t address, struct awaited_by *w)
{
    bool found = false;

    for (size_t i = 0; i < memory.n && !found; i++) {
        const struct awaited_memory *m = &memory.of[i];
        if ((found = address - m->at < m->bytes))
            *w = (struct awaited_by){m->awaited, -1, m->what};
    }
    return found;
}

/* Whether the address is in memory that was entered, and who writes there. Relaxed: memory that a
 * thread waits in was entered before the thread got its address, and is forgotten after that. */
static bool find_entered(uint64_t address, struct awaited_by *w)
{
    if (looked_up.address != address ||
        looked_up.changes != atomic_load_explicit(&memory.changes, memory_order_relaxed) + 1) {
        pthread_mutex_lock(&memory.lock);
        looked_up.address = address;
        looked_up.changes = atomic_load_explicit(&memory.changes, memory_order_relaxed) + 1;
        looked_up.found = search_entered(address, &looked_up.by);
        pthread_mutex_unlock(&memory.lock);
    }
    if (looked_up.found)
        *w = looked_up.by;
    return looked_up.found;
}

/* ---- What is waited for ---- */

static find_sync_fn *find_sync; /* NULL: there are no kernels */

/* Who writes the word of a round that kernels of the team wait for (gshmem_kernel_receive); -1:
 * nobody. */
static int writer_of(const struct team *t, uint64_t in_block)
{
    const int link = (int)(in_block / sizeof(uint64_t) % GSHMEM_DEVICE_SYNC_LINKS);
    const bool flat = t->n_pes <= 8; /* GSHMEM_ROUND_FLAT, unless a test has set another */
    const int64_t before = flat ? link + 1 : INT64_C(1) << link;

    if (in_block >= sizeof(struct gshmem_device_sync) || before >= t->n_pes)
        return -1;
    return t->members[(t->my_pe + t->n_pes - before) % t->n_pes];
}

/* Whether others write to this address, and who. */
static bool find_awaited(uint64_t address, struct awaited_by *w)
{
    const struct job *j = job;
    uint64_t in_block;

    *w = (struct awaited_by){.awaited = TRACE_VARIABLE, .only = -1, .what = "wait_until"};
    if (!j || !find_sync)
        return false;
    if (find_entered(address, w))
        return true;
    const int team = find_sync(j, (const void *)(uintptr_t)address, &in_block);
    if (team >= 0 && j->team[team]) {
        *w = (struct awaited_by){TRACE_PEERS, writer_of(j->team[team], in_block), "a collective"};
        return true;
    }
    for (int i = 0; i < j->map->segments; i++) {
        if (address - j->map->segment[i].base < j->map->segment[i].bytes)
            return true;
    }
    return false;
}

/* ---- Events ---- */

/* Threads of the program may be at it when the job ends: one that waits for a stream, or begins a
 * kernel which does not use GSHMEM. */
static atomic_bool has_trace; /* and a job */
static atomic_uint writers;   /* threads that use them */

static bool writer_enter(void)
{
    atomic_fetch_add(&writers, 1); /* seq_cst, and the load: pair with kernel_trace_end */
    return atomic_load(&has_trace);
}

static void writer_leave(void)
{
    /* release: pairs with the acquire in kernel_trace_end */
    atomic_fetch_sub_explicit(&writers, 1, memory_order_release);
}

/* What the device keeps of a wait, from its begin until it is told: never 0. */
static uint64_t awaited_pack(const struct awaited_by *w)
{
    return UINT64_C(1) << 63 | (uint64_t)w->awaited << 56 |
           (uint64_t)(trace_name(w->what) & 0xffffff) << 32 | (uint32_t)w->only;
}

static enum trace_op awaited_kind(uint64_t by)
{
    return (enum trace_op)(by >> 56 & 0x7f);
}

static uint32_t awaited_name(uint64_t by)
{
    return (uint32_t)(by >> 32 & 0xffffff);
}

static int awaited_only(uint64_t by)
{
    return (int)(uint32_t)by;
}

static uint64_t kernel_trace_awaited_by(uint64_t address)
{
    struct awaited_by w;
    const uint64_t by = writer_enter() && find_awaited(address, &w) ? awaited_pack(&w) : 0;

    writer_leave();
    return by;
}

/* A wait for an address where the device has found nobody is for the program's own memory. */
static uint64_t awaited_of(const struct kernel_wait *w)
{
    static const struct awaited_by grid = {TRACE_BLOCKS, -1, "a barrier of the grid"},
                                   own = {TRACE_VARIABLE, -1, "wait_until"};

    return w->by ? w->by : awaited_pack(w->address ? &own : &grid);
}

static void tell_wait(const struct kernel_wait *w, uint64_t by)
{
    trace_write_at(w->begin, TRACE_KERNEL_WAIT, awaited_kind(by), awaited_only(by), w->place,
                   w->address, awaited_name(by));
}

/* The name of a function in kernels that nvcc compiled, "_Z4workPmi": without its types. */
static const char *without_types(const char *name, char *text, size_t size)
{
    const char *rest, *at = NULL;
    size_t n, last = 0;

    if (strncmp(name, "_Z", 2) != 0)
        return name;
    rest = name + 2 + strspn(name + 2, "NKL");
    while (*rest >= '1' && *rest <= '9') { /* the last part of a name in namespaces */
        for (n = 0; *rest >= '0' && *rest <= '9' && n < TRACE_NAME_BYTES; rest++)
            n = 10 * n + (size_t)(*rest - '0');
        if (n > strlen(rest))
            return name;
        at = rest;
        last = n;
        rest += n;
    }
    if (!at)
        return name;
    snprintf(text, size, "%.*s", (int)last, at);
    return text;
}

static void write_event_of(enum kernel_event what, uint64_t ticks, uint64_t place,
                           const char *name, uint64_t value)
{
    static const enum trace_what of[] = {
        [KERNEL_BEGINS] = TRACE_LAUNCH,
        [KERNEL_ENDS] = TRACE_LAUNCH_END,
        [KERNEL_BLOCK_BEGINS] = TRACE_BLOCK,
        [KERNEL_BLOCK_ENDS] = TRACE_BLOCK_END,
        [KERNEL_BLOCK_IDLE] = TRACE_IDLE,
        [KERNEL_BLOCK_BUSY] = TRACE_BUSY,
        [KERNEL_WAIT_ENDS] = TRACE_KERNEL_WAKE,
        [KERNEL_RANGE_BEGINS] = TRACE_KERNEL_CALL,
        [KERNEL_RANGE_ENDS] = TRACE_KERNEL_RETURN,
        [KERNEL_HOST_GOES_ON] = TRACE_RETURN,
    };

    char text[TRACE_NAME_BYTES];

    if (what == KERNEL_HOST_WAITS)
        trace_write(TRACE_CALL, TRACE_NO_OP, -1, TRACE_FOR_KERNELS, trace_name("waits for kernels"),
                    0);
    else
        trace_write_at(ticks, of[what], TRACE_NO_OP, -1, place, value,
                       name ? trace_name(without_types(name, text, sizeof text)) : 0);
}

static void kernel_trace_event(enum kernel_event what, uint64_t ticks, uint64_t place,
                               const char *name, uint64_t value)
{
    if (writer_enter())
        write_event_of(what, ticks, place, name, value);
    writer_leave();
}

/* One that is over is one event, if it fits. */
static void write_waited(const struct kernel_wait *w)
{
    const uint64_t by = awaited_of(w);
    const uint64_t block = w->place - kernel_thread_of(w->place), ticks = w->end - w->begin;
    const bool is_idle = w->idle && w->idle == w->begin;

    if (w->end && ticks < UINT32_MAX && !(w->address >> 48) && (is_idle || !w->idle)) {
        trace_write_at(w->begin, TRACE_KERNEL_WAITED, awaited_kind(by), awaited_only(by), w->place,
                       trace_waited(w->address, awaited_name(by), is_idle), ticks);
        return;
    }
    tell_wait(w, by);
    if (!w->end)
        return;
    trace_write_at(w->end, TRACE_KERNEL_WAKE, TRACE_NO_OP, -1, w->place, 0, 0);
    if (!w->idle)
        return;
    trace_write_at(w->idle, TRACE_IDLE, TRACE_NO_OP, -1, block, 0, 0);
    trace_write_at(w->end, TRACE_BUSY, TRACE_NO_OP, -1, block, 0, 0);
}

static void kernel_trace_waited(const struct kernel_wait *w)
{
    if (writer_enter())
        write_waited(w);
    writer_leave();
}

static const struct kernel_events listener = {kernel_trace_event, kernel_trace_waited,
                                              trace_ticks_now, kernel_trace_awaited_by};

void kernel_trace_begin(find_sync_fn *find)
{
    if (!trace_is_on())
        return;
    find_sync = find;
    atomic_store(&has_trace, true);
    device_listen(&listener);
}

void kernel_trace_end(void)
{
    if (trace_is_on()) {
        device_listen(NULL);
        atomic_store(&has_trace, false); /* seq_cst, and the load: pair with writer_enter */
        while (atomic_load(&writers))
            clock_yield();
    }
    find_sync = NULL;
}
