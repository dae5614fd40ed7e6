/* What a PE shows of what its threads wait for, so that any process that maps the page, or gets a
 * copy of it, can say so without that PE's help: it may be stopped, or in an endless loop.
 *
 * Each PE has one page, in the system part of its symmetric memory. The PE alone writes it; PEs of
 * its node read it in place, PEs of other nodes by a get. gshmem-where and gshmemrun get copies
 * (ask.h). A thread that waits claims a record when its spin is over, refreshes it while it waits,
 * and frees it when the wait is over.
 *
 * Knows nothing of jobs, teams and networks: numbers, addresses and texts. */
#ifndef GSHMEM_RUNTIME_WHERE_RECORD_H
#define GSHMEM_RUNTIME_WHERE_RECORD_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WHERE_MAGIC = 0x6573687au,
    WHERE_VERSION = 4, /* of all that this header and socket.h describe */
    WHERE_WAITS = 32,  /* waits of one PE that are shown; more are counted */
    WHERE_OF_MAIN = 0, /* the record that is kept for the main thread, if there are many waits */
    WHERE_PEERS = 48,  /* PEs of one wait that are listed; more are counted */
    WHERE_FRAMES = 20, /* of a call stack */
    WHERE_MODULES = 96, /* a function of a file beyond these has no name */
    WHERE_NAME = 48,
    WHERE_TEXT = 120,
    WHERE_PATH = 200,
};

enum where_leaving { WHERE_STAYS, WHERE_LEAVES, WHERE_LEFT };

/* For whom, or for what, a wait is. */
enum where_kind {
    WHERE_UNKNOWN,    /* it has not lasted long enough to be described */
    WHERE_COLLECTIVE, /* for members of a team: those of `peer` have not arrived */
    WHERE_VARIABLE,   /* for an update of the variable at `at`, by any PE */
    WHERE_LOCK,       /* for the PE that is before this one in the lock's queue */
    WHERE_NETWORK,    /* for answers of the PEs in `peer` */
    WHERE_ROOM,       /* for room in the queue to the PE in `peer`, or in a channel */
    WHERE_THREAD,     /* for another thread of the same PE */
    WHERE_START,      /* for the PEs in `peer` to join the job */
};

/* A record of a kernel's wait that was not refreshed for so long is of one that is over. The PE's
 * own clock counts, which stands still while the PE is stopped. */
#define WHERE_KERNEL_NS 5000000000u
/* A thread that waits refreshes its record several times a second. One that has not for so long is
 * not in the wait any more: a signal handler has interrupted it, or the thread has ended. */
#define WHERE_WAIT_NS 5000000000u

enum { WHERE_SEGMENT_HEAP = 1 }; /* the symmetric heap in host memory; others have no name here */

struct where_wait {
    /* Writes that have ended; the last field counts those that have begun. A copy that was read
     * from the first to the last byte, here or by a get, is whole if they are equal. */
    _Atomic uint32_t ended;
    int32_t kind;    /* enum where_kind */
    int32_t tid;     /* the thread, as the system numbers it; 0: a thread of a kernel; negative:
                        the thread -tid, which makes a call of a stream */
    int32_t team;    /* collectives; -1: none */
    uint64_t round;  /* collectives of kernels: the team's round; 0: not known */
    uint64_t since;  /* ns of CLOCK_MONOTONIC: the end of the spin */
    uint64_t seen;   /* ns: the last refresh */
    uint64_t at;     /* the object's address in this PE; 0: none */
    int32_t segment; /* of symmetric memory, -1: not in any */
    int32_t peers;   /* how many PEs are waited for; the first WHERE_PEERS are in `peer` */
    uint64_t offset; /* in the segment */
    int32_t peer[WHERE_PEERS];
    int32_t step; /* the PEs beyond `peer` go on from its last one in this step; 0: not known */
    uint32_t frames;
    uint64_t frame[WHERE_FRAMES]; /* return addresses, the innermost first */
    char call[WHERE_NAME];        /* the public name of the call */
    char text[WHERE_TEXT];        /* more for people: values, amounts; may be empty */
    uint32_t unused2;
    _Atomic uint32_t begun;
};

/* A file whose code runs in the process, so that addresses can be resolved elsewhere. */
struct where_module {
    uint64_t begin, end; /* of all its addresses */
    uint64_t bias;       /* what to subtract for the file's own addresses */
    char path[WHERE_PATH];
};

struct where_page {
    uint32_t magic, version;
    int32_t pe, pid;
    _Atomic uint32_t modules; /* how many of `module` are complete */
    _Atomic uint32_t claimed; /* bit i: wait[i] is in use */
    _Atomic uint32_t more;    /* waits that found no free record */
    uint32_t leaving;         /* enum where_leaving */
    /* The PE's clock, in ns of its CLOCK_MONOTONIC; 0: not known. Its thread sets it at least each
     * second, and a PE of its node that copies the page to the time of the copy. */
    _Atomic uint64_t now;
    char program[WHERE_PATH];
    struct where_wait wait[WHERE_WAITS];
    struct where_module module[WHERE_MODULES];
};

static_assert(WHERE_WAITS == 32, "a bit of `claimed` for each");
static_assert(sizeof(struct where_wait) % 8 == 0, "records are aligned");

/* The thread as the system numbers it; 0: one of a kernel. */
static inline int32_t where_thread_of(const struct where_wait *w)
{
    return w->tid < 0 ? -w->tid : w->tid;
}

/* A copy of a record that its PE may be writing; false: it is free, or changes all the time, or was
 * torn when the page was fetched. */
static inline bool where_copy(const struct where_page *page, int i, struct where_wait *copy)
{
    const struct where_wait *from = &page->wait[i];

    for (int attempt = 0; attempt < 100; attempt++) {
        /* acquire: pairs with the release in where_write_end */
        uint32_t before = atomic_load_explicit(&from->ended, memory_order_acquire);
        if (!(atomic_load_explicit(&page->claimed, memory_order_acquire) >> i & 1))
            return false;
        *copy = *from;
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&from->begun, memory_order_relaxed) == before)
            return true;
    }
    return false;
}

/* Enters one PE more that is waited for. Of a team with thousands of members those beyond `peer`
 * are known, too, if they come in the order of PEs. */
static inline void where_add_peer(struct where_wait *w, int32_t pe)
{
    const int32_t beyond = w->peers - WHERE_PEERS;

    for (int i = 0; i < w->peers && i < WHERE_PEERS; i++) {
        if (w->peer[i] == pe)
            return;
    }
    if (beyond < 0)
        w->peer[w->peers] = pe;
    else if (beyond == 0)
        w->step = pe - w->peer[WHERE_PEERS - 1];
    else if (pe != w->peer[WHERE_PEERS - 1] + w->step * (beyond + 1))
        w->step = 0;
    w->peers++;
}

/* PE number i of those that are waited for; -1: not known. */
static inline int32_t where_peer(const struct where_wait *w, int32_t i)
{
    if (i < 0 || i >= w->peers || (i >= WHERE_PEERS && !w->step))
        return -1;
    if (i < WHERE_PEERS)
        return w->peer[i];
    const int64_t pe = w->peer[WHERE_PEERS - 1] + (int64_t)w->step * (i - WHERE_PEERS + 1);
    return pe < 0 || pe > INT32_MAX ? -1 : (int32_t)pe;
}

static inline void where_write_begin(struct where_wait *w)
{
    atomic_store_explicit(&w->begun, atomic_load_explicit(&w->begun, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    /* release fence: pairs with the acquire fence in where_copy */
    atomic_thread_fence(memory_order_release);
}

static inline void where_write_end(struct where_wait *w)
{
    /* release: pairs with the acquire in where_copy */
    atomic_store_explicit(&w->ended, atomic_load_explicit(&w->begun, memory_order_relaxed),
                          memory_order_release);
}

#endif
