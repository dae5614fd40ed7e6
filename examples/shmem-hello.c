/* How do I run a program written for OpenSHMEM? It includes shmem.h, as anywhere else. */
#include <shmem.h>
#include <stdio.h>

static long from_left = -1; /* every PE has one, and every PE can write it */

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_p(&from_left, (long)me, (me + 1) % n);
    shmem_barrier_all();
    printf("PE %d of %d was written by PE %ld\n", me, n, from_left);
    shmem_finalize();
    return from_left != (me + n - 1) % n;
}
