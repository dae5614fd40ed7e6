/* A part of the program from a static library, whose variables are the program's. */
#include "library.h"

#include <shmem.h>

static long from_neighbour;

long library_exchange(void)
{
    int n = shmem_n_pes();

    shmem_long_p(&from_neighbour, shmem_my_pe() + 1, (shmem_my_pe() + 1) % n);
    shmem_barrier_all();
    return from_neighbour;
}
