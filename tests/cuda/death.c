/* A PE dies: what the others have of its memory is no harm to them. They go on with each other's and let
 * go of all of it; nothing may be left open. Starts its own PEs, by fork and a unique id. */
#include <signal.h>
#include <sys/wait.h>

#include "gshmem.h"
#include "../check.h"

enum { PES = 3 };

static void live(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};
    int other = 1 - pe;

    CHECK_OK(gshmem_init_attr(&attr));
    long *words = gshmem_calloc(8, sizeof *words);
    CHECK(words);
    CHECK_OK(gshmem_barrier_all());
    if (pe == PES - 1)
        raise(SIGKILL);
    CHECK_EQ(gshmem_barrier_all(), GSHMEM_ERR_PEER_DEAD);
    CHECK(!gshmem_malloc(100 << 20)); /* it would take all PEs */
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_PEER_DEAD);
    CHECK_OK(gshmem_long_p(words, 5 + pe, other));
    CHECK_EQ(gshmem_long_g(words, other), 5 + pe);
    CHECK_OK(gshmem_long_p(words + 1, 9, PES - 1)); /* mapped memory outlives its owner */
    CHECK_EQ(gshmem_finalize(), GSHMEM_ERR_PEER_DEAD);
}

int main(void)
{
    gshmem_uniqueid_t uid;
    pid_t child[PES];

    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            live(&uid, pe);
            exit(0); /* through the simulation's account */
        }
    }
    live(&uid, 0);
    for (int pe = 1; pe < PES; pe++) {
        int status;
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        CHECK(pe == PES - 1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    return 0;
}
