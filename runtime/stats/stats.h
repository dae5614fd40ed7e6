/* Counts what this PE does: operations by kind, way and size; waits; what became of channels and
 * connections. docs: include/gshmem/stats.h.
 *
 * A count is one word that one thread at a time writes, in a block of its own: the thread's, that
 * of the network's lock, or the proxy's. Readers add the blocks up. */
#ifndef GSHMEM_RUNTIME_STATS_STATS_H
#define GSHMEM_RUNTIME_STATS_STATS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gshmem/status.h"

#define STATS_KIND_TABLE(X)                                                                        \
    X(PUT, "put")                                                                                  \
    X(GET, "get")                                                                                  \
    X(ATOMIC, "atomic")                                                                            \
    X(FETCH, "fetch")                                                                              \
    X(SIGNAL, "signal")                                                                            \
    X(INTERNAL, "internal")

#define STATS_PATH_TABLE(X, of)                                                                    \
    X(MAPPED, "mapped", of)                                                                        \
    X(DEVICE, "device", of)                                                                        \
    X(NETWORK, "network", of)                                                                      \
    X(PROXY, "proxy", of)                                                                          \
    X(PROXY_NETWORK, "proxy_network", of)

/* id, name, what it counts */
#define STATS_COUNTER_TABLE(X)                                                                     \
    X(WAITS_NETWORK, "wait.network.waits", "waits for own requests that outlasted the spin")       \
    X(NS_NETWORK, "wait.network.ns", "ns in them")                                                 \
    X(WAITS_PEERS, "wait.peers.waits", "the same for other PEs, as in a barrier or for a lock")    \
    X(NS_PEERS, "wait.peers.ns", "ns in them")                                                     \
    X(WAITS_VARIABLE, "wait.variable.waits", "the same for a variable of this PE")                 \
    X(NS_VARIABLE, "wait.variable.ns", "ns in them")                                               \
    X(FULL, "network.full", "operations of the host that waited for room in a queue")              \
    X(CHANNEL_FULL, "channel.full", "how often the proxy found a channel full: kernels may wait")  \
    X(PROXY_FULL, "channel.retries", "how often a command had to wait for room in a queue")        \
    X(PROXY_ROUNDS, "proxy.rounds", "rounds of the proxy's thread")                                \
    X(PROXY_WORKED, "proxy.worked", "those in which something happened")                           \
    X(PROXY_BUSY_NS, "proxy.busy_ns", "ns in those")                                               \
    X(PROXY_IDLE_NS, "proxy.idle_ns", "ns in the others, and on the way to sleep")                 \
    X(PROXY_ASIDE_NS, "proxy.aside_ns", "ns aside, while another thread made progress")            \
    X(PROXY_SLEEPS, "proxy.sleeps", "how often it went to sleep")                                  \
    X(PROXY_ASLEEP_NS, "proxy.asleep_ns", "ns asleep")                                             \
    X(CONNECTIONS, "connections", "connections that were made to PEs of other nodes")              \
    X(RECONNECTIONS, "reconnections", "paths that were made again after they had failed")          \
    X(RETRIES, "retries", "attempts to connect that failed and were made again")                   \
    X(PATH_FAILURES, "path_failures", "paths over a NIC that have failed")                         \
    X(REGISTRATIONS, "registrations", "buffers of the program that it has registered")             \
    X(REGISTERED_BYTES, "registered_bytes", "bytes of those")                                      \
    X(LOST, "lost", "operations and waits that were not counted, for lack of memory")

enum stats_kind {
#define X(id, name) STATS_##id,
    STATS_KIND_TABLE(X)
#undef X
    STATS_KINDS
};

enum stats_path {
#define X(id, name, of) STATS_##id,
    STATS_PATH_TABLE(X, )
#undef X
    STATS_PATHS
};

/* Sizes: up to 8 bytes, 64, 512, 4 KiB, 32 KiB, 256 KiB, 2 MiB, and larger ones. */
enum { STATS_CLASSES = 8, STATS_PAIRS = STATS_KINDS * STATS_PATHS };

/* Calls, and ranges of the program, that are counted by name. */
enum { STATS_CALLS = 64, STATS_CALL_BYTES = 40 };

enum stats_value {
    STATS_CELLS_END = 2 * STATS_PAIRS * STATS_CLASSES, /* [kind][path][class]: operations, bytes */
    STATS_BEFORE_COUNTERS = STATS_CELLS_END - 1,
#define X(id, name, text) STATS_##id,
    STATS_COUNTER_TABLE(X)
#undef X
    STATS_COUNTERS_END, /* calls: [STATS_CALLS] how many, [STATS_CALLS] ns in them */
    STATS_CALLS_NS = STATS_COUNTERS_END + STATS_CALLS,
    STATS_VALUES = STATS_CALLS_NS + STATS_CALLS
};

/* The class of sizes of which bytes - 1 has that many bits, less one. */
extern const uint8_t stats_class[64];

/* The operations of the cell; its bytes are behind them. */
static inline int stats_cell(int kind, int path, uint64_t bytes)
{
    const int bits = 63 - __builtin_clzll((bytes - (bytes > 0)) | 1);

    return 2 * ((kind * STATS_PATHS + path) * STATS_CLASSES + stats_class[bits]);
}

/* ---- Writing ---- */

struct stats_peer {
    _Atomic uint64_t operations, bytes, ns, unused; /* so that its place is a shift */
};

struct stats_block {
    struct stats *stats;
    struct stats_block *next, *next_free;
    struct stats_peer *peer; /* [n_pes + 1]: by the PE that an operation is on, or that a wait is
                                for; the last one is of waits for several. NULL: it has none */
    _Alignas(64) _Atomic uint64_t value[STATS_VALUES];
};

/* Relaxed: a count orders nothing. */
static inline void stats_more(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void stats_add(struct stats_block *b, enum stats_value what, uint64_t n)
{
    stats_more(&b->value[what], n);
}

/* n operations of so many bytes each. */
static inline void stats_add_operations(struct stats_block *b, enum stats_kind kind,
                                        enum stats_path path, uint64_t bytes, uint64_t n)
{
    _Atomic uint64_t *cell = &b->value[stats_cell(kind, path, bytes)];

    stats_more(&cell[0], n);
    stats_more(&cell[1], n * bytes);
}

static inline void stats_add_operation(struct stats_block *b, enum stats_kind kind,
                                       enum stats_path path, uint64_t bytes)
{
    stats_add_operations(b, kind, path, bytes, 1);
}

static inline void stats_add_peer(struct stats_block *b, int pe, uint64_t operations,
                                  uint64_t bytes)
{
    struct stats_peer *peer = &b->peer[pe];

    stats_more(&peer->operations, operations);
    stats_more(&peer->bytes, bytes);
}

static inline void stats_operation(struct stats_block *b, enum stats_kind kind,
                                   enum stats_path path, int pe, uint64_t bytes)
{
    stats_add_operation(b, kind, path, bytes);
    stats_add_peer(b, pe, 1, bytes);
}

struct stats {
    int n_pes;
    bool wanted;  /* GSHMEM_STATS: every operation goes out of line, and is counted */
    bool gathers; /* the job ends with one report, as PE 0 wants it */
    bool reported;
    char *file;   /* that the report is written to; NULL: it is a table on stderr */
    size_t shown_at; /* where a PE's system memory has what it shows to PE 0 */
    struct stats_block *network; /* of the holder of the network's lock */
    struct stats_block *proxy;   /* of the proxy's thread */
    pthread_mutex_t lock;        /* covers all below */
    pthread_key_t key;           /* its destructor takes back the block of a thread that ends */
    bool has_key;
    struct stats_block *all, *unused; /* blocks, and those that no thread has */
    struct stats_sums *base;          /* what was counted when it was reset; NULL: never */
    _Atomic uint64_t lost;
    /* A name is complete before the number counts it. */
    _Atomic int calls;
    char call[STATS_CALLS][STATS_CALL_BYTES];
};

/* The counts of a PE, added up. */
struct stats_row {
    uint64_t operations, bytes, ns;
};

struct stats_sums {
    uint64_t counts_all;          /* GSHMEM_STATS was set */
    uint64_t value[STATS_VALUES];
    char call[STATS_CALLS][STATS_CALL_BYTES]; /* "": there is none, nor any after it */
    struct stats_row peer[]; /* [n_pes + 1] */
};

static inline size_t stats_sums_bytes(int n_pes)
{
    return sizeof(struct stats_sums) + ((size_t)n_pes + 1) * sizeof(struct stats_row);
}

/* Until stats_free; NULL: out of memory. */
struct stats *stats_new(int n_pes, bool wanted);
void stats_free(struct stats *s);
/* In a child of fork, which is no PE. */
void stats_leave_parent(struct stats *s);

/* The block that this thread has, as of that number of jobs of the process. */
extern _Thread_local struct stats_held {
    struct stats_block *block;
    unsigned of;
} stats_held;
extern unsigned stats_begun;
struct stats_block *stats_take_block(struct stats *s);
/* A block of the network's or the proxy's, if the PE has more than one; peers: it counts by PE.
 * NULL: out of memory. */
struct stats_block *stats_new_block(struct stats *s, bool peers);

/* This thread's block; NULL: out of memory, which was counted. */
static inline struct stats_block *stats_mine(struct stats *s)
{
    return __builtin_expect(stats_held.of == stats_begun, 1) ? stats_held.block
                                                             : stats_take_block(s);
}

/* This thread enters a call, or a range of the program, and leaves the innermost one. */
void stats_call_begin(struct stats *s, const char *name);
void stats_call_end(struct stats *s);

/* ---- Reading ---- */

/* What was counted since the last reset; `to` has stats_sums_bytes. */
void stats_sum(struct stats *s, struct stats_sums *to);
gshmem_status_t stats_reset(struct stats *s);

/* ---- names.c ---- */

/* Names of what programs and reports are told: for each kind and path the sums over sizes, too.
 * Calls have names of their own (stats_sums.call). */
int stats_names(void);
const char *stats_name(int i);
const char *stats_text(int i);
uint64_t stats_named(const struct stats_sums *of, int i);

/* ---- report.c ---- */

struct stats_report {
    int n;              /* PEs that are reported */
    int n_pes;          /* of the job */
    const int *pe;      /* [n] */
    const struct stats_sums *const *of; /* [n] */
    const char *network; /* the transport's name; NULL: the job is on one node */
};

/* A table for people; and JSON. */
void stats_print(FILE *to, const struct stats_report *r);
void stats_print_json(FILE *to, const struct stats_report *r);

#endif
