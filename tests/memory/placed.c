/* The heap at the same address in all PEs: pointers to its objects mean the same everywhere.
 *
 * `placed` with GSHMEM_HEAP_BASE set; `placed taken ADDRESS`: the program has something there, and init fails. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "gshmem.h"

#include "check.h"

struct node {
    struct node *next;
    long value;
};

int main(int argc, char **argv)
{
    if (argc == 3) {
        void *at = (void *)(uintptr_t)strtoull(argv[2], NULL, 0);
        CHECK(mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
        CHECK_FAILS(gshmem_init(), GSHMEM_ERR_MEMORY, "r--p");
        return 1; /* with the line that the test looks for */
    }
    for (int round = 0; round < 2; round++) { /* it is given back at the end */
        CHECK_OK(gshmem_init());
        const int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
        uint64_t *where = gshmem_malloc(3 * sizeof *where);
        struct node *list = gshmem_align(1 << 20, 3 * sizeof *list);
        CHECK(where && list);
        where[0] = (uintptr_t)list;
        CHECK_OK(gshmem_uint64_min_reduce(GSHMEM_TEAM_WORLD, &where[1], &where[0], 1));
        CHECK_OK(gshmem_uint64_max_reduce(GSHMEM_TEAM_WORLD, &where[2], &where[0], 1));
        CHECK(where[1] == where[0] && where[2] == where[0]);
        CHECK(gshmem_ptr(list, me) == list);
        /* A list that the left one has made, with addresses of its own. */
        struct node made[3] = {{&list[2], me}, {NULL, me + 200}, {&list[1], me + 100}};
        CHECK_OK(gshmem_putmem(list, made, sizeof made, right));
        CHECK_OK(gshmem_barrier_all());
        long expected = left;
        for (struct node *at = list; at; at = at->next, expected += 100)
            CHECK_EQ(at->value, expected);
        CHECK_EQ(expected, left + 300);
        char *large = gshmem_calloc(8 << 20, 1); /* given back, taken, and grown as ever */
        CHECK(large);
        memset(large, 1, 8 << 20);
        CHECK_OK(gshmem_free(large));
        CHECK((large = gshmem_calloc(8 << 20, 1)) && !large[0] && !large[(8 << 20) - 1]);
        CHECK_OK(gshmem_finalize());
    }
    return 0;
}
