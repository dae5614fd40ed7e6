/* A wait for a PE that has died ends also while another PE's messages arrive all the time.
 *
 * Three PEs, each on a host of its own: pretended by host names, which takes root. PE 1 dies while PE 0 waits for
 * it in a team of the two. PE 2 puts to PE 0 without a pause until PE 0 tells it to stop. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { PES = 3, DEAD = 1, BUSY = 2, SECONDS = 20 };

static char target[64], source[64];
static uint64_t stop; /* symmetric: PE 0 tells PE 2 */

static void be_on_host(int host)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
}

static void be_busy(void)
{
    const time_t end = time(NULL) + SECONDS;

    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        for (int i = 0; i < 100; i++)
            CHECK_OK(gshmem_putmem_nbi(target, source, sizeof source, 0));
        CHECK(time(NULL) < end);
    }
    _exit(0);
}

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};
    gshmem_team_t two;

    be_on_host(pe);
    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &two));
    CHECK_OK(gshmem_barrier_all());
    if (pe == DEAD) {
        sleep(1); /* the other may be waiting by then */
        raise(SIGKILL);
    }
    if (pe == BUSY)
        be_busy();
    CHECK_EQ(gshmem_team_sync(two), GSHMEM_ERR_PEER_DEAD);
    CHECK_OK(gshmem_uint64_p(&stop, 1, BUSY));
}

int main(void)
{
    gshmem_uniqueid_t uid;
    pid_t child[PES];
    int status;

    setenv("GSHMEM_LOG", "none", 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed check of PE 0 is the end of all */
            be_pe(&uid, pe);
        }
    }
    be_pe(&uid, 0);
    CHECK_EQ(waitpid(child[BUSY], &status, 0), child[BUSY]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    _exit(0); /* the job is lost, and finalize would say so */
}
