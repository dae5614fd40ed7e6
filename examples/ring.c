/* How do I hand data to another PE and tell it that it is there? A token goes round all PEs: data
 * and signal travel together, and who sees the signal sees the data. */
#include <gshmem.h>
#include <stdio.h>

enum { LAPS = 100 };

/* Global and static variables are symmetric: every PE has its own, and any PE can reach them. */
static long token;
static uint64_t laps_seen;

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n;

    for (uint64_t lap = 1; lap <= LAPS; lap++) {
        long next;
        if (me == 0) { /* sets it off, and sees it again after a whole lap */
            next = token + 1;
            gshmem_raise(gshmem_long_put_signal(&token, &next, 1, &laps_seen, lap,
                                                GSHMEM_SIGNAL_SET, right));
        }
        gshmem_signal_wait_until(&laps_seen, GSHMEM_CMP_GE, lap);
        next = token + 1;
        if (me != 0)
            gshmem_raise(gshmem_long_put_signal(&token, &next, 1, &laps_seen, lap,
                                                GSHMEM_SIGNAL_SET, right));
    }
    int failed = me == 0 && token != (long)LAPS * n;
    if (me == 0)
        printf("ring: after %d laps of %d PEs the token is %ld: %s\n", LAPS, n, token,
               failed ? "wrong" : "right");
    return gshmem_finalize() || failed;
}
