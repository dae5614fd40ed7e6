/* Copies of all sizes around the limits between ways to copy, from and to any place in a line: what
 * was to be copied is there, and nothing beside it has changed. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gshmem.h"
#include "runtime/memory/copy.h"

enum { MOST = 2 << 20, MARGIN = 192 };

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

int main(void)
{
    static const size_t around[] = {1024,     2048,     4096,     16 << 10,
                                    24 << 10, 32 << 10, 64 << 10, 1 << 20};
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
            for (size_t i = 0; i < PLACES; i++)
                for (size_t j = 0; j < (around[a] < 64 << 10 ? PLACES : 2); j++)
                    try_copy(around[a] + more * (i + 1), place[i], place[j]);
    for (size_t bytes = 1024; bytes < 1024 + 640; bytes++)
        try_copy(bytes, bytes % 61, bytes % 67);
    for (size_t bytes = 0; bytes < 200; bytes++)
        try_way("past the caches", copy_past_caches, bytes, bytes % 61, bytes % 67);
    memcpy(to, from, 100000);
    gshmem_path_copy(to, to, 100000); /* a put to oneself may be onto itself */
    CHECK(memcmp(to, from, 100000) == 0);
    free(from);
    free(to);
    free(expected);
    return 0;
}
