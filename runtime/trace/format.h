/* A trace: the file into which one PE writes what it does, and which gshmem-trace reads.
 *
 * A head of TRACE_HEAD_BYTES, then chunks of 8 KiB. A thread that writes holds a chunk until it is
 * full, and takes the next one of the ring that nobody holds. The file is mapped, so that what a PE
 * has written is there also after it was killed.
 *
 * Times are ticks of the CPU's counter. Each chunk has a pair of ticks and nanoseconds; from those
 * of all chunks the reader derives the times of events. */
#ifndef GSHMEM_RUNTIME_TRACE_FORMAT_H
#define GSHMEM_RUNTIME_TRACE_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/base/kernel_place.h"

enum {
    TRACE_VERSION = 4,
    TRACE_HEAD_BYTES = 64 * 1024,
    TRACE_EVENTS = 254, /* of a chunk */
    TRACE_NAMES = 960,
    TRACE_NAME_BYTES = 64,
    TRACE_SEGMENTS = 16,
    TRACE_STREAMS = 4095, /* that ids tell apart, beside stream 0 */
};

static const char trace_magic[8] = {'G', 'S', 'H', 'M', 'E', 'M', 't', 'r'};

/* What an event says. The fields that are not named are 0. An operation's id is the same in all of
 * its events, on all PEs. */
enum trace_what {
    TRACE_NONE,
    /* The thread has entered a call, or a range of the program; at: the name's number; id: enum
     * trace_called. */
    TRACE_CALL,
    TRACE_RETURN, /* and has left the innermost of them */
    /* The PE has arrived at a round of a team, in which all members wait for each other. at: the
     * call's name; id: the team, its first member and the number of the round (trace_round), the
     * same on all members; bytes: tells the team from others with this handle and first member, of
     * which one was made after the other was destroyed. (Not those of active sets that are made
     * for one collective, when most handles are in use: they have 0.) peer: of a rooted round, the
     * root, the only one that is waited for; otherwise -1. */
    TRACE_ROUND,
    TRACE_MET, /* and goes on; at: the status */
    /* The spin of a wait is over. at: the call's name; peer: the only PE that is waited for; id:
     * enum trace_awaited. */
    TRACE_WAIT,
    TRACE_WAKE, /* the wait is over */
    /* The variable at the address `at` has what it was waited for. id: its value. */
    TRACE_SEEN,
    /* Steps of an operation. at: the object, as trace_at; bytes; peer: the other PE. */
    TRACE_POSTED,   /* a thread has given it to the network */
    TRACE_TAKEN,    /* the proxy has taken it from the channel */
    TRACE_SENT,     /* the transport has queued it for the network */
    TRACE_EFFECT,   /* it has been carried out in the memory of this PE; peer: the initiator */
    TRACE_COPIED,   /* likewise, by the initiator itself; peer: the PE that has the memory */
    TRACE_SIGNALED, /* the signal of a put has been updated, in the memory of this PE */
    TRACE_COPIED_SIGNAL, /* likewise, by the initiator itself */
    TRACE_DONE,     /* the initiator knows that it is complete; at: the status */
    /* A thread of a kernel posts the command; at: its place, as kernel_place. */
    TRACE_KERNEL,
    /* The proxy has taken a command, and carried it out at once, without a failure: what
     * TRACE_TAKEN, TRACE_COPIED and TRACE_DONE say, one tick after the other. */
    TRACE_CARRIED,
    /* Kernels of the host device. id: the place of the launch, block or thread (kernel_place);
     * bytes: the number of a name. */
    TRACE_LAUNCH, /* a launch begins to run; at: its blocks; and ends */
    TRACE_LAUNCH_END,
    TRACE_BLOCK, /* a block begins; at: its threads; and ends */
    TRACE_BLOCK_END,
    TRACE_IDLE, /* all threads of a block wait, and one goes on */
    TRACE_BUSY,
    /* A thread waits, as in TRACE_WAIT; at: the address that it polls, or 0; op: enum
     * trace_awaited. */
    TRACE_KERNEL_WAIT,
    TRACE_KERNEL_WAKE,
    /* Both, of a wait that was short; id: the place; time: when it began; bytes: for how many
     * ticks; at: trace_waited. */
    TRACE_KERNEL_WAITED,
    TRACE_KERNEL_CALL, /* a range of the program begins, and ends */
    TRACE_KERNEL_RETURN,
    TRACE_WHATS,
};

enum trace_op { TRACE_NO_OP, TRACE_PUT, TRACE_GET, TRACE_ATOMIC, TRACE_SIGNAL, TRACE_OPS };

enum trace_called { TRACE_OF_GSHMEM, TRACE_FOR_KERNELS, TRACE_OF_PROGRAM };

/* Who can end a wait. */
enum trace_awaited { TRACE_PEERS, TRACE_NETWORK, TRACE_VARIABLE, TRACE_BLOCKS };

struct trace_event {
    uint64_t time; /* ticks */
    uint64_t id;
    uint64_t at;
    uint32_t bytes; /* 0: of an atomic, one object; UINT32_MAX: at least so many */
    uint32_t kind;  /* what << 27 | op << 24 | peer, or TRACE_NOBODY */
};

#define TRACE_NOBODY UINT32_C(0xffffff)

static inline uint32_t trace_kind(enum trace_what what, enum trace_op op, int peer)
{
    return (uint32_t)what << 27 | (uint32_t)op << 24 | ((uint32_t)peer & TRACE_NOBODY);
}

static inline enum trace_what trace_what_of(const struct trace_event *e)
{
    return (enum trace_what)(e->kind >> 27);
}

static inline uint64_t trace_at(int segment, uint64_t offset)
{
    return (uint64_t)(uint32_t)segment << 56 | (offset & UINT64_C(0xffffffffffffff));
}

/* The operation that is number n of those that `stream` of PE `of` has begun: stream 0 is of the
 * PE's threads, c + 1 of its channel c. A put over the network that nobody traces has the id 0. */
static inline uint64_t trace_id(int of, uint32_t stream, uint64_t n)
{
    return (uint64_t)(uint32_t)(of + 1) << 44 | (uint64_t)(stream & 0xfff) << 32 | (n & 0xffffffff);
}

enum { TRACE_TEAMS = 1 << 12 }; /* a round's id has room for handles below this */

static inline uint64_t trace_round(int team, int first, uint32_t round)
{
    return (uint64_t)((uint32_t)team & (TRACE_TEAMS - 1)) << 52 |
           (uint64_t)((uint32_t)first & 0xfffff) << 32 | round;
}

/* Of a short wait: the address, the number of the wait's name, and whether the block was idle for
 * all of it. */
static inline uint64_t trace_waited(uint64_t address, uint32_t name, int idle)
{
    return (address & UINT64_C(0xffffffffffff)) | (uint64_t)(name & 0x3ff) << 48 |
           (uint64_t)(idle != 0) << 58;
}

static inline uint64_t trace_waited_address(uint64_t at)
{
    return at & UINT64_C(0xffffffffffff);
}

static inline uint32_t trace_waited_name(uint64_t at)
{
    return (uint32_t)(at >> 48 & 0x3ff);
}

static inline int trace_waited_idle(uint64_t at)
{
    return (int)(at >> 58 & 1);
}

struct trace_chunk {
    uint64_t number; /* the how many-th taken, from 1; 0: none has been here */
    uint64_t ticks;  /* when it was taken */
    uint64_t ns;     /* the same time, of CLOCK_MONOTONIC */
    uint32_t thread; /* as the system numbers it */
    _Atomic uint32_t held;
    _Atomic uint32_t used; /* events that are complete */
    char name[16];         /* of the thread */
    uint32_t unused[3];
    struct trace_event event[TRACE_EVENTS];
};

struct trace_segment {
    uint64_t base, bytes; /* in this PE */
};

struct trace_head {
    char magic[8];
    uint32_t version, pe, n_pes, node;
    uint64_t job;            /* the same in all PEs of a job */
    uint64_t begun_ns;       /* CLOCK_MONOTONIC */
    uint64_t begun_realtime; /* the same time, CLOCK_REALTIME */
    uint64_t begun_ticks;
    uint64_t ended_ns, ended_ticks; /* 0: the PE has not come to its end */
    uint32_t pid, chunks;
    char boot[40]; /* which clock CLOCK_MONOTONIC is: of which start of which machine */
    char host[64];
    char program[64];
    struct trace_segment segment[TRACE_SEGMENTS];
    _Atomic uint64_t taken; /* chunks so far */
    _Atomic uint64_t lost;  /* events for which there was no chunk */
    _Atomic uint64_t overwritten; /* events of which later ones have the place */
    _Atomic uint32_t names;
    uint32_t unused;
    char name[TRACE_NAMES][TRACE_NAME_BYTES];
};

static_assert(sizeof(struct trace_event) == 32, "half a cache line");
static_assert(sizeof(struct trace_chunk) == 8192, "a whole number of pages");
static_assert(sizeof(struct trace_head) <= TRACE_HEAD_BYTES, "names end before the chunks");
static_assert(TRACE_NAMES <= 1024, "ten bits of trace_waited");
static_assert(TRACE_WHATS <= 32 && TRACE_OPS <= 8, "five bits, and three");

#endif
