/* Begins and ends a job, and no more: for what is said when it cannot. With "grow" a large object is asked
 * for in between, which some PE may not get: then none does, and what follows works. */
#include "gshmem.h"
#include "../check.h"

int main(int argc, char **argv)
{
    (void)argv;
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    long *word = gshmem_malloc(sizeof *word);
    CHECK(word);
    if (argc > 1) {
        CHECK(!gshmem_malloc(60 << 20));
        CHECK(gshmem_last_error(NULL) != GSHMEM_OK);
        char *again = gshmem_malloc(60 << 20); /* the fault was for once */
        CHECK(again);
        CHECK_OK(gshmem_putmem(again + (50 << 20), &me, sizeof me, (me + 1) % n));
        CHECK_OK(gshmem_free(again));
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_long_p(word, me, (me + 1) % n));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(word, me), (me + n - 1) % n);
    return gshmem_finalize() != GSHMEM_OK;
}
