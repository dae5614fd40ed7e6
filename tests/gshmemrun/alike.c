/* A program whose PEs say things alike: alike differ|again|die. With `differ` PE 1 makes another call than the rest,
 * with `again` twice; with `die` one that has said so is gone at once, without a word of its own. */
#include <signal.h>
#include <string.h>

#include "gshmem.h"

int main(int argc, char **argv)
{
    static int source[16], dest[16];

    if (argc != 2 || gshmem_init())
        return 3;
    size_t n = gshmem_my_pe() == 1 ? 3 : 4;
    for (int i = strcmp(argv[1], "again") == 0 ? 2 : 1; i > 0; i--) {
        if (gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, dest, source, n) != GSHMEM_ERR_MISMATCH)
            return 4;
    }
    if (strcmp(argv[1], "die") == 0 && gshmem_my_pe() == 0)
        raise(SIGKILL);
    return gshmem_finalize() ? 5 : 0;
}
