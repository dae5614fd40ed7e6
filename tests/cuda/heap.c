/* The symmetric heap in (simulated) GPU memory: put and get across it, and its growth. */
#include "gshmem.h"
#include "../check.h"

int main(void)
{
    CHECK_OK(gshmem_init());
    int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    long *words = gshmem_calloc(100, sizeof *words), mine[100], got[100];
    CHECK(words);
    CHECK_OK(gshmem_getmem(got, words, sizeof got, right));
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(got[i], 0);
        mine[i] = 1000 * me + i;
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_putmem(words, mine, sizeof mine, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(got, words, sizeof got, me));
    for (int i = 0; i < 100; i++)
        CHECK_EQ(got[i], 1000 * left + i);
    CHECK_OK(gshmem_free(words));
    return gshmem_finalize();
}
