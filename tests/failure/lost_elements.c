/* Elements on their way to a PE that dies: the calls that wait for them end, also one that waits for
 * room because more are on their way than there is memory for; and those that come later.
 *
 * PE 1, on another node, is stopped, so that nothing arrives, and is killed while PE 0 waits. PE 0 stops it
 * after its own barrier: what PE 1 sent for that may leave PE 1 after PE 1 has left the barrier. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { TABLE = 1000, ELEMENTS = 1000000 }; /* far more than 4 MiB with their numbers */

static long table[TABLE];
static long got[ELEMENTS];
static size_t number[ELEMENTS];
static int pes[ELEMENTS];

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = 2};

    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_OK(gshmem_barrier_all());
}

/* When this PE waits, as far as that can be known; the result is the same if it does not yet. */
static void kill_soon(pid_t other)
{
    pid_t killer = fork();

    CHECK(killer >= 0);
    if (killer == 0) {
        usleep(100000);
        kill(other, SIGKILL);
        _exit(0);
    }
}

int main(void)
{
    gshmem_uniqueid_t uid;
    int status;

    setenv("GSHMEM_LOG", "none", 0);
    setenv("GSHMEM_PRETENDED_NODES", "2", 1);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    const pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_pe(&uid, 1);
        for (;;)
            pause();
    }
    be_pe(&uid, 0);
    for (int i = 0; i < ELEMENTS; i++) {
        number[i] = (size_t)i % TABLE;
        pes[i] = i % 2;
    }
    CHECK_EQ(kill(other, SIGSTOP), 0);
    CHECK_EQ(waitpid(other, &status, WUNTRACED), other);
    CHECK(WIFSTOPPED(status));
    kill_soon(other);
    gshmem_status_t posted = gshmem_long_ixget_pes_nbi(got, table, number, pes, ELEMENTS);
    gshmem_status_t quiet = gshmem_quiet();
    CHECK_EQ(posted ? posted : quiet, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_long_ixget(got, table, number, 10, 1), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_long_ix_add_pes(table, got, number, pes, 10), GSHMEM_ERR_PEER_DEAD);
    CHECK_OK(gshmem_long_ixget(got, table, number, 10, 0)); /* this PE's own */
    _exit(0); /* the job is lost, and finalize would say so */
}
