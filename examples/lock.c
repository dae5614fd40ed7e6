/* How do I change something that one atomic cannot? Two balances on PE 0 must always add up to the
 * same; every PE moves money between them, and a lock keeps the others out meanwhile. */
#include <gshmem.h>
#include <stdio.h>
#include <unistd.h>

enum { TRANSFERS = 100, MONEY = 1000000 };

static long lock; /* a symmetric long, 0 at first */
static long balance[2] = {MONEY, 0};

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();

    for (int i = 0; i < TRANSFERS; i++) {
        long now[2];
        gshmem_raise(gshmem_set_lock(&lock));
        gshmem_raise(gshmem_long_get(now, balance, 2, 0));
        usleep(10); /* time for others to come in between, were it not for the lock */
        now[0] -= me + 1;
        now[1] += me + 1;
        gshmem_raise(gshmem_long_put(balance, now, 2, 0));
        gshmem_raise(gshmem_clear_lock(&lock)); /* and completes what was put before */
    }
    gshmem_raise(gshmem_barrier_all());

    long moved = (long)TRANSFERS * n * (n + 1) / 2;
    int failed = me == 0 && (balance[0] != MONEY - moved || balance[1] != moved);
    if (me == 0)
        printf("lock: %d PEs moved %ld in all, %ld and %ld are left: %s\n", n, moved, balance[0],
               balance[1], failed ? "wrong" : "right");
    return gshmem_finalize() || failed;
}
