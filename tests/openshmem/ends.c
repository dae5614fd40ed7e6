/* How programs of OpenSHMEM end: `ends global N` by shmem_global_exit on the last PE, while others wait;
 * `ends return` from main without finalize; `ends exit` by exit; `ends checked` by a refused put, whose line has
 * the program's own function. */
#include "check.h"

int main(int argc, char **argv)
{
    static long never;
    const char *how = argc > 1 ? argv[1] : "return";

    shmem_init();
    if (strcmp(how, "global") == 0) {
        if (shmem_my_pe() == shmem_n_pes() - 1)
            shmem_global_exit(atoi(argv[2]));
        shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    }
    if (strcmp(how, "checked") == 0) {
        long *object = shmem_malloc(2 * sizeof *object);
        shmem_long_p(object + 2, 1, 0);
    }
    /* What is under way when a program ends without a word still arrives. */
    shmem_long_p(&never, 1, (shmem_my_pe() + 1) % shmem_n_pes());
    if (strcmp(how, "exit") == 0)
        exit(0);
    return 0;
}
