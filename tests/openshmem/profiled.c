/* What tool.c is tried on: a program whose calls are inline, and which finds its results right. */
#include "check.h"

int main(void)
{
    static long cell[4], source;
    shmem_ctx_t ctx;

    shmem_init();
    int me = shmem_my_pe(), next = (me + 1) % shmem_n_pes();
    CHECK_ZERO(shmem_ctx_create(0, &ctx));
    for (int i = 1; i <= 10; i++)
        shmem_long_p(&cell[0], i, next);
    for (int i = 1; i <= 5; i++)
        shmem_ctx_long_p(ctx, &cell[1], i, next);
    shmem_ctx_quiet(ctx);
    source = 9;
    for (int i = 0; i < 3; i++)
        shmem_putmem(&cell[2], &source, sizeof source, next);
    for (int i = 0; i < 7; i++)
        CHECK_EQ(shmem_atomic_fetch_add(&cell[3], 2L, next), 2 * i); /* C11: a spelling of long's */
    shmem_barrier_all();
    CHECK_EQ(cell[0], 10);
    CHECK_EQ(cell[1], 5);
    CHECK_EQ(cell[2], 9);
    CHECK_EQ(cell[3], 14);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
