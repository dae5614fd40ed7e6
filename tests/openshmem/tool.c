/* A profiling tool: counts calls of some functions, and says how many at the end. Preloaded, or linked
 * before the library. Compiled with optimisation, as the program is. */
#include <stdio.h>

#include <pshmem.h>

static int p, ctx_p, putmem, fetch_add, barrier;

void shmem_long_p(long *dest, long value, int pe)
{
    p++;
    pshmem_long_p(dest, value, pe);
}

void shmem_ctx_long_p(shmem_ctx_t ctx, long *dest, long value, int pe)
{
    ctx_p++;
    pshmem_ctx_long_p(ctx, dest, value, pe);
}

void shmem_putmem(void *dest, const void *source, size_t nelems, int pe)
{
    putmem++;
    pshmem_putmem(dest, source, nelems, pe);
}

long shmem_long_atomic_fetch_add(long *dest, long value, int pe)
{
    fetch_add++;
    return pshmem_long_atomic_fetch_add(dest, value, pe);
}

void shmem_barrier_all(void)
{
    barrier++;
    pshmem_barrier_all();
}

void shmem_finalize(void)
{
    int me = pshmem_my_pe();

    pshmem_finalize();
    printf("tool: PE %d: %d p, %d ctx_p, %d putmem, %d fetch_add, %d barrier\n", me, p, ctx_p, putmem,
           fetch_add, barrier);
    fflush(stdout);
}
