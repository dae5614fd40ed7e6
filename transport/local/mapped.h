/* The local transport's state, and how mapped memory is read and written. */
#ifndef GSHMEM_TRANSPORT_LOCAL_MAPPED_H
#define GSHMEM_TRANSPORT_LOCAL_MAPPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "device/device.h"
#include "transport/transport.h"

enum { LOCAL_COPIES = 16 }; /* requests that the device carries out at a time; a power of two */

/* A request that the device carries out: a copy, and then an atomic, if the request has them. */
struct copying {
    void (*done)(void *tag, gshmem_status_t status);
    void *tag;
    bool copies;     /* the device copies data: */
    uint64_t ticket; /* the device's name for the last copy */
    bool updates;    /* the device carries out an atomic, or a signal that adds: */
    struct device_update update;
    uint64_t updating; /* the device's name for it; 0: it has not begun */
    uint64_t *old;     /* where the old value goes, or NULL */
    gshmem_status_t failure;
    uint64_t *flag; /* a signal in host memory, stored when the data has been copied; NULL: none */
    int signal_op;
    uint64_t value; /* the signal's */
};

struct local {
    struct transport base;
    struct transport_config config;
    struct transport_request rest; /* of one that takes several rounds; 0 bytes: there is none */
    struct copying copying[LOCAL_COPIES];
    uint32_t first, end; /* of these, counted for ever */
};

/* ---- Loads and stores ---- */

/* An aligned object of 1, 2, 4 or 8 bytes, for which a PE may wait, is stored whole, and after
 * all that was posted before: release, which pairs with the acquire in wait_until_load and of
 * programs that poll by themselves. */
static inline void local_store(void *to, const void *from, size_t bytes)
{
    union {
        uint8_t b1;
        uint16_t b2;
        uint32_t b4;
        uint64_t b8;
    } word;

    if (bytes > sizeof word || bytes & (bytes - 1) || (uintptr_t)to & (bytes - 1)) {
        atomic_thread_fence(memory_order_release);
        memcpy(to, from, bytes);
        return;
    }
    memcpy(&word, from, bytes);
    switch (bytes) {
    case 1:
        __atomic_store_n((uint8_t *)to, word.b1, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((uint16_t *)to, word.b2, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((uint32_t *)to, word.b4, __ATOMIC_RELEASE);
        break;
    case 8:
        __atomic_store_n((uint64_t *)to, word.b8, __ATOMIC_RELEASE);
        break;
    }
}

static inline void local_load(void *to, const void *from, size_t bytes)
{
    if (bytes == 8 && (uintptr_t)from % 8 == 0) {
        uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);
        memcpy(to, &word, 8);
    } else if (bytes == 4 && (uintptr_t)from % 4 == 0) {
        uint32_t word = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
        memcpy(to, &word, 4);
    } else {
        memcpy(to, from, bytes);
    }
}

/* release: pairs with the acquire of the PE that waits for the signal and then reads the data */
static inline void local_signal(uint64_t *at, int op, uint64_t value)
{
    if (op == GSHMEM_SIGNAL_SET)
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}

/* ---- Addresses ---- */

/* Where an offset of a segment of that PE is mapped here, or NULL. */
static inline char *local_resolve(struct local *t, int pe, int segment, uint64_t offset)
{
    char *base = t->config.mapped(t->config.context, pe, segment);

    return base ? base + offset : NULL;
}

static inline gshmem_status_t local_unmapped(struct local *t, int pe)
{
    return t->config.fail(GSHMEM_ERR_UNREACHABLE, "local: memory of PE %d is not mapped here", pe);
}

#endif
