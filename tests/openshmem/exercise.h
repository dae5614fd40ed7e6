/* What the generated tests share: every PE talks to the next one and to itself, about objects in the
 * heap and in the program's own data. Valid as C and as C++. */
#ifndef GSHMEM_TESTS_OPENSHMEM_EXERCISE_H
#define GSHMEM_TESTS_OPENSHMEM_EXERCISE_H

#include <float.h>
#include <limits.h>

#include "check.h"

enum { AREA_BYTES = 64 * 1024, SIGNALS = 64 };

static int me, n_pes;
static shmem_ctx_t ctx;
static uint64_t *sig; /* [SIGNALS], symmetric */

/* One round: what this PE does to PE `to`, PE `from` does to it. */
static void exercise(void *area, int to, int from);

__extension__ typedef unsigned __int128 uint128;

static inline void sync_all(void)
{
    shmem_barrier_all();
}

/* A value of any real type, as the test wants it and as it is. */
#define EXPECT(what, index, got, expected)                                                         \
    do {                                                                                           \
        if (!((got) == (expected)))                                                                \
            CHECK_FAIL("%s: element %d is %.21Lg, expected %.21Lg", what, (int)(index),            \
                       (long double)(got), (long double)(expected));                               \
    } while (0)

int main(void)
{
    static char data_area[AREA_BYTES] __attribute__((aligned(64)));

    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    CHECK_ZERO(shmem_ctx_create(0, &ctx));
    sig = (uint64_t *)shmem_calloc(SIGNALS, sizeof *sig);
    void *heap_area = shmem_malloc(AREA_BYTES);
    CHECK(sig && heap_area);

    exercise(heap_area, (me + 1) % n_pes, (me + n_pes - 1) % n_pes);
    exercise(heap_area, me, me);
    exercise(data_area, (me + 1) % n_pes, (me + n_pes - 1) % n_pes);

    shmem_ctx_destroy(ctx);
    shmem_free(heap_area);
    shmem_free(sig);
    shmem_finalize();
    return 0;
}

#endif
