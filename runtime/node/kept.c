#define _GNU_SOURCE
#include "runtime/node/kept.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/device.h"

struct kept {
    struct kept *next; /* by address */
    char *at;
    size_t bytes;
    char *copy;         /* until it is placed */
    bool copied;
    atomic_bool placed; /* it is private memory, and in no list */
};

/* Outlives the job, as what it keeps does. */
static struct kept *waiting;
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;

static void kept_fill(struct kept *k)
{
    if (!k->copied)
        memcpy(k->copy, k->at, k->bytes);
    k->copied = true;
}

struct kept *kept_add(void *at, size_t bytes, bool now)
{
    struct kept *k = malloc(sizeof *k), **link = &waiting;
    char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (!k || copy == MAP_FAILED) {
        if (copy != MAP_FAILED)
            munmap(copy, bytes);
        free(k);
        return NULL;
    }
    *k = (struct kept){.at = at, .bytes = bytes, .copy = copy};
    if (now)
        kept_fill(k);
    pthread_mutex_lock(&waiting_lock);
    while (*link && (*link)->at < k->at)
        link = &(*link)->next;
    k->next = *link;
    *link = k;
    pthread_mutex_unlock(&waiting_lock);
    return k;
}

void kept_remove(struct kept *k)
{
    struct kept **link = &waiting;

    /* A placed one takes no lock, which a forked child might find held. acquire: pairs with the
     * release in kept_place */
    if (!atomic_load_explicit(&k->placed, memory_order_acquire)) {
        pthread_mutex_lock(&waiting_lock);
        while (*link && *link != k)
            link = &(*link)->next;
        if (*link)
            *link = k->next;
        pthread_mutex_unlock(&waiting_lock);
    }
    if (atomic_load_explicit(&k->placed, memory_order_acquire))
        munmap(k->at, k->bytes);
    else
        munmap(k->copy, k->bytes);
    free(k);
}

void kept_copy(void)
{
    pthread_mutex_lock(&waiting_lock);
    for (struct kept *k = waiting; k; k = k->next)
        kept_fill(k);
    pthread_mutex_unlock(&waiting_lock);
}

/* In one step. Where the system cannot do it, the job's memory stays there, which is as good for
 * who reads. */
static void kept_place(struct kept *k)
{
    if (mremap(k->copy, k->bytes, k->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, k->at) == MAP_FAILED)
        munmap(k->copy, k->bytes);
    /* release: pairs with the acquire in kept_remove */
    atomic_store_explicit(&k->placed, true, memory_order_release);
}

void kept_unmap(void *at, size_t bytes)
{
    char *from = at, *end = from + bytes;
    struct kept **link = &waiting, *k;

    pthread_mutex_lock(&waiting_lock);
    while ((k = *link)) {
        if (k->at < from || k->at + k->bytes > end) {
            link = &k->next;
            continue;
        }
        *link = k->next;
        if (k->at > from)
            device_arena_unmap(from, (size_t)(k->at - from));
        from = k->at + k->bytes;
        kept_place(k);
    }
    pthread_mutex_unlock(&waiting_lock);
    if (end > from)
        device_arena_unmap(from, (size_t)(end - from));
}
