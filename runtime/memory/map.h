/* The map of symmetric memory: which segments there are, where each PE's copy of them is, and the
 * atomicity domain of the objects in them. docs/address-map.md has the picture.
 *
 * The map is filled at start-up and as heaps grow (map_fill.c, device_heap.c), and read by all
 * rooms. map_find is the one function that compares an address with segments; map_resolve adds how
 * a PE's copy is reached. Inline code (gshmem/context.h) has a short form of both, for mapped
 * copies of the heap and of the executable's variables, and calls these for all other cases.
 *
 * Knows numbers and tables alone: no job, no transport and no device. */
#ifndef GSHMEM_RUNTIME_MEMORY_MAP_H
#define GSHMEM_RUNTIME_MEMORY_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/base.h"
#include "gshmem/status.h"
#include "runtime/memory/data.h"

/* Segments by number, the same on all PEs. */
enum {
    SEGMENT_SYSTEM, /* the library's own part: team_sync blocks, one per team slot */
    SEGMENT_HEAP,   /* in host memory */
    SEGMENT_DEVICE, /* the heap in the device's own memory, and the library's part before it */
    SEGMENT_NIC,    /* objects that NICs update, directly behind the heap in host memory */
    SEGMENT_DATA,   /* from here on: variables of the executable, then those of libraries */
    SEGMENT_MAX = SEGMENT_DATA + DATA_SEGMENT_MAX,
    SEGMENT_NONE = SEGMENT_MAX
};

/* The atomicity domain of an object: the one agent that makes all atomics and signals on it. Two
 * agents could lose an update. */
enum atomicity {
    ATOMICITY_CPU, /* CPUs of the target's node, and its proxy for other nodes */
    ATOMICITY_GPU, /* the target's GPU and those that map its memory; CPUs ask it to */
    ATOMICITY_NIC, /* the target's NIC, also for updates by the target itself */
};

/* Whether the device alone touches the objects of a domain, so that CPUs reach them by copies that
 * it makes. Without a default, as all switches over domains: the compiler names the places that a
 * new one concerns. */
static inline bool atomicity_is_device(enum atomicity a)
{
    switch (a) {
    case ATOMICITY_GPU:
        return true;
    case ATOMICITY_CPU:
    case ATOMICITY_NIC:
        break;
    }
    return false;
}

/* Whether NICs alone update the objects of a domain; CPUs read and write them. */
static inline bool atomicity_is_nic(enum atomicity a)
{
    switch (a) {
    case ATOMICITY_NIC:
        return true;
    case ATOMICITY_CPU:
    case ATOMICITY_GPU:
        break;
    }
    return false;
}

/* How this PE reaches a PE's copy of an object; from WAY_NOT_SYMMETRIC on: the reason why it
 * cannot. */
enum way {
    WAY_MAPPED,  /* by loads and stores at `at` */
    WAY_DEVICE,  /* by copies that the device makes, at `at` */
    WAY_NETWORK, /* by a transport, to which segment and offset name the object */
    WAY_NOT_SYMMETRIC,
    WAY_PAST_END,        /* the first byte is in the segment, the last is not */
    WAY_UNREGISTERED,    /* behind the heap, and not within one buffer that was imported into it */
    WAY_UNKNOWN_PROGRAM, /* a variable, and which program that PE runs is not known yet:
                            map_learn_program */
    WAY_OTHER_PROGRAM,   /* a variable, and that PE runs another program */
    WAY_UNREACHABLE,     /* that PE's copy is not mapped, and no transport reaches it */
};

/* Where an object is: computed once for an operation, and passed on. */
struct location {
    void *at;        /* WAY_MAPPED, WAY_DEVICE; else NULL */
    uint64_t offset; /* in the segment */
    int32_t pe;      /* of the job */
    uint8_t segment; /* SEGMENT_NONE: the address is in none */
    uint8_t atomicity; /* an enum atomicity */
    uint8_t way;     /* an enum way */
    bool reserved;   /* in the library's own part: not an object of the program */
};

typedef bool imported_fn(const void *context, uint64_t offset, uint64_t bytes);

struct segment {
    uintptr_t base;     /* of this PE's own copy */
    uint64_t bytes;     /* number of addresses; 0: there is no such segment */
    uint64_t reserved;  /* the number of bytes at the beginning that are the library's own */
    uint64_t own_bytes; /* behind these are imported buffers, with holes between them */
    /* Whether all these bytes are in one imported buffer; NULL: there are none. */
    imported_fn *imported;
    const void *context;
    const uint64_t *there; /* how many of its own bytes have memory now; NULL: all */
    uint8_t atomicity;     /* an enum atomicity */
    bool variables;        /* a PE that runs another program has no copy */
    /* [PE of the job]: where its copy begins; 0: not mapped. NULL: no PE's is. */
    uintptr_t *mapped; /* for loads and stores of CPUs */
    uintptr_t *copied; /* for copies that the device makes */
    uintptr_t *loaded; /* for loads and stores of the device's kernels */
};

enum program { PROGRAM_UNKNOWN, PROGRAM_SAME, PROGRAM_OTHER };

struct memory_map {
    int pe, n_pes;
    int segments; /* numbers from here on are not in use */
    struct segment segment[SEGMENT_MAX];
    bool *local;              /* [PE]: on this node, so that no transport reaches it */
    _Atomic uint8_t *program; /* [PE]: an enum program */
};

gshmem_status_t map_open(struct memory_map *m, int pe, int n_pes);
void map_close(struct memory_map *m);

/* Adds a segment. Allocates its tables, in which no PE's copy is mapped yet: the first one, or the
 * other two for memory of a device. */
gshmem_status_t map_add(struct memory_map *m, int number, struct segment s, bool of_device);

/* Finds the segment that contains all these bytes of this PE, and the offset; l->way does not apply
 * to a PE. false: l->way is the reason, and l->segment the segment in which the bytes begin. 0
 * bytes are where `mine` is. */
bool map_find(const struct memory_map *m, const void *mine, uint64_t bytes, struct location *l);

/* Finds pe's copy of the bytes at `mine`: {segment, offset, way}. */
void map_resolve(const struct memory_map *m, const void *mine, uint64_t bytes, int pe,
                 struct location *l);

/* Whether the object can be reached, and is the program's. */
static inline bool location_is_reached(const struct location *l)
{
    return l->way <= WAY_NETWORK && !l->reserved;
}

/* Where pe's copy of a segment begins, for CPUs; 0: it is not mapped. */
static inline uintptr_t map_mapped(const struct memory_map *m, int segment, int pe)
{
    return m->segment[segment].mapped ? m->segment[segment].mapped[pe] : 0;
}

/* The atomicity domain of the object at this PE's address; the CPU's for memory that is not
 * symmetric. */
enum atomicity map_atomicity(const struct memory_map *m, const void *mine);

/* Whether all these bytes are in a segment, and have memory now. */
bool map_has_memory(const struct memory_map *m, const void *mine, uint64_t bytes);

/* Whether some of these bytes are in a heap. */
bool map_overlaps_heap(const struct memory_map *m, uintptr_t at, uint64_t bytes);

/* Which program that PE runs; once known it does not change. */
static inline enum program map_program(const struct memory_map *m, int pe)
{
    return (enum program)atomic_load_explicit(&m->program[pe], memory_order_relaxed);
}
static inline void map_learn_program(struct memory_map *m, int pe, bool same)
{
    atomic_store_explicit(&m->program[pe], same ? PROGRAM_SAME : PROGRAM_OTHER,
                          memory_order_relaxed);
}

#endif
