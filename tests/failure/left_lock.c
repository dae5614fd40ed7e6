/* A PE gives a lock back and leaves the job in good order, while the others still ask for the lock, or wait for it: they get
 * it, one after the other.
 *
 *     left_lock test|set */
#include <string.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

static long lock;

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    if (me == 0)
        CHECK_OK(gshmem_set_lock(&lock));
    CHECK_OK(gshmem_barrier_all());
    if (me == 0) {
        usleep(3000 + getpid() % 1000); /* in the midst of what the others do; it passes at any moment */
        CHECK_OK(gshmem_clear_lock(&lock));
        return 0;
    }
    if (strcmp(argv[1], "test") == 0) {
        int busy;
        while ((busy = gshmem_test_lock(&lock)) > 0)
            ;
        CHECK_EQ(busy, 0);
    } else {
        CHECK_OK(gshmem_set_lock(&lock));
    }
    CHECK_OK(gshmem_clear_lock(&lock));
    return 0;
}
