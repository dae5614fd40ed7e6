/* Copies of all sizes around the limits between ways to copy, from and to any place in a line: what
 * was to be copied is there, and nothing beside it has changed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gshmem.h"
#include "runtime/base/sanitizer.h"
#include "runtime/memory/copy.h"

enum { MARGIN = 192, LARGE = 24 << 20, MOST = LARGE + (1 << 20), TIMES = 30 };

static unsigned char *from, *to, *expected;

typedef void copy_fn(void *to, const void *from, size_t bytes);

static void try_way(const char *way, copy_fn *copy, size_t bytes, size_t source, size_t dest)
{
    size_t all = MARGIN + bytes + MARGIN;

    memset(to, 0xa5, all);
    memset(expected, 0xa5, all);
    memcpy(expected + dest, from + source, bytes);
    copy(to + dest, from + source, bytes);
    if (memcmp(to, expected, all) != 0)
        CHECK_FAIL("%s: %zu B from place %zu to %zu", way, bytes, source, dest);
}

static void try_copy(size_t bytes, size_t source, size_t dest)
{
    try_way("copy", gshmem_path_copy, bytes, source, dest);
    try_way("past the caches", copy_past_caches, bytes, source, dest);
}

/* Programs poll on the last word of a put's data, which is written last. */

static unsigned long *polled;
static _Atomic unsigned long seen;

static void *poll_last(void *words)
{
    const size_t n = *(size_t *)words;

    for (unsigned long time = 1; time <= TIMES; time++) {
        while (atomic_load_explicit((_Atomic unsigned long *)&polled[n - 1],
                                    memory_order_acquire) != time)
            ;
        for (size_t i = n - 1; i > n - 1 - 4096; i--)
            CHECK_EQ(polled[i], time);
        for (size_t i = 0; i < n; i += 64)
            CHECK_EQ(polled[i], time);
        atomic_store_explicit(&seen, time, memory_order_release);
    }
    return NULL;
}

static void last_is_last(size_t bytes)
{
    size_t n = bytes / sizeof *polled;
    unsigned long *source = (unsigned long *)from;
    pthread_t poller;

    polled = (unsigned long *)to;
    memset(to, 0, bytes);
    atomic_store(&seen, 0);
    CHECK_EQ(pthread_create(&poller, NULL, poll_last, &n), 0);
    for (unsigned long time = 1; time <= TIMES; time++) {
        for (size_t i = 0; i < n; i++)
            source[i] = time;
        for_another_pe_begin(); /* its stores are plain ones, as for a PE that polls */
        gshmem_path_copy(to, from, bytes);
        for_another_pe_end();
        while (atomic_load_explicit(&seen, memory_order_acquire) != time)
            ;
    }
    pthread_join(poller, NULL);
}

int main(void)
{
    static const size_t around[] = {1024,     2048,     4096,     8 << 10, 16 << 10,
                                    24 << 10, 32 << 10, 64 << 10, 1 << 20, LARGE};
    static const size_t place[] = {0, 1, 7, 8, 31, 32, 63, 64, 65, 127};
    enum { PLACES = sizeof place / sizeof place[0], AROUND = sizeof around / sizeof around[0] };

    from = aligned_alloc(4096, MOST);
    to = aligned_alloc(4096, MOST);
    expected = aligned_alloc(4096, MOST);
    CHECK(from && to && expected);
    for (size_t i = 0; i < MOST; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 16);
    for (size_t a = 0; a < AROUND; a++)
        for (size_t more = 0; more < 2; more++)
            for (size_t i = 0; i < (around[a] < LARGE ? PLACES : 2); i++)
                for (size_t j = 0; j < (around[a] < 64 << 10 ? PLACES : 2); j++)
                    try_copy(around[a] + more * (i + 1), place[i], place[j]);
    for (size_t bytes = 1024; bytes < 1024 + 640; bytes++)
        try_copy(bytes, bytes % 61, bytes % 67);
    for (size_t bytes = 0; bytes < 200; bytes++)
        try_way("past the caches", copy_past_caches, bytes, bytes % 61, bytes % 67);
    memcpy(to, from, 100000);
    gshmem_path_copy(to, to, 100000); /* a put to oneself may be onto itself */
    CHECK(memcmp(to, from, 100000) == 0);
    last_is_last(64 << 10);
    last_is_last(LARGE);
    free(from);
    free(to);
    free(expected);
    return 0;
}
