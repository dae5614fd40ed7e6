/* How do I start without a launcher? One process makes a unique id, hands its bytes to the others
 * by any means (here: fork), and all of them come together by it.
 *
 *     uniqueid [PEs] */
#include <gshmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int mine, sum;

static int run(const gshmem_uniqueid_t *uid, int pe, int n)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = n};

    if (gshmem_init_attr(&attr))
        return 1;
    mine = pe + 1;
    gshmem_raise(gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &sum, &mine, 1));
    int failed = sum != n * (n + 1) / 2;
    if (pe == 0)
        printf("uniqueid: %d PEs met, their numbers from 1 add up to %d: %s\n", n, sum,
               failed ? "wrong" : "right");
    return gshmem_finalize() || failed;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4, failed, status;
    gshmem_uniqueid_t uid;

    if (n < 1 || gshmem_get_uniqueid(&uid))
        return 1;
    for (int pe = 1; pe < n; pe++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0)
            return run(&uid, pe, n);
    }
    failed = run(&uid, 0, n); /* who makes the id is PE 0 */
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
