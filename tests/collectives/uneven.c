/* Heaps that end at different places, as those of nodes with different numbers of PEs do: a collect that is too
 * large for some PEs alone fails on all, and the team works on. */
#include <stdbool.h>

#include "groups.h"

enum { MIB = 1 << 20 };

int main(void)
{
    const char *pe = getenv("GSHMEM_RUN_PE"), *n = getenv("GSHMEM_RUN_NPES");
    const bool roomy = pe && n && atoi(pe) == atoi(n) - 1; /* on the last host */

    setenv("GSHMEM_HEAP_MAX", roomy ? "128M" : "64M", 1);
    CHECK_OK(gshmem_init());
    char *object = gshmem_malloc(MIB);
    CHECK(object != NULL);
    /* Begins within the small heaps, wherever in their first MiB the object is, and ends beyond. */
    gshmem_status_t status = gshmem_collectmem(GSHMEM_TEAM_WORLD, object + 62 * MIB, object, MIB);
    CHECK_EQ(status, GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_OK(gshmem_collectmem(GSHMEM_TEAM_WORLD, object + MIB / 2, object, 8));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_free(object));
    CHECK_OK(gshmem_finalize());
    return 0;
}
