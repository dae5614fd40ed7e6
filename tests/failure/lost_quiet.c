/* What calls answer whose operations went to a PE that has died: that it has died, also where it cannot even be
 * reached for the first time. And a lock is given back all the same, by the call that says so.
 *
 * PEs 0 and 1 share a host, the others another: both pretended by host names, which takes root. PE 3 dies and is
 * then put to for the first time, PE 4 with a put on its way. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { PES = 5, DEAD = 3, STOPPED = 4, FAR_APART = 8 };

static long *locks;                      /* symmetric, of each home one */
static uint64_t which, under_way, target; /* symmetric: PE 1 tells PE 0 */
static uint64_t go_on;                   /* symmetric: PE 0 tells PE 1 */
static pid_t child[PES];                 /* of PE 0 */
static int met[2][2]; /* pipes to DEAD and STOPPED: each PE that goes on says that it has left the barrier */

static void be_on_host(int host)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
}

/* PE 1 takes the lock that has its home on PE 0: there the queue's end is in the low half. */
static void take_lock(void)
{
    const uint32_t mine = 2;

    for (uint64_t i = 0; i < PES; i++) {
        long *lock = locks + i * FAR_APART;
        CHECK_OK(gshmem_set_lock(lock));
        if (gshmem_uint32_atomic_fetch((const uint32_t *)lock, 0) == mine) {
            CHECK_OK(gshmem_uint64_p(&which, i, 0));
            which = i;
            return;
        }
        CHECK_OK(gshmem_clear_lock(lock));
    }
    CHECK_FAIL("no lock has its home on PE 0");
}

/* As the parent of them all it knows when they are. */
static void wait_for_state(int pe, int options)
{
    int status;

    CHECK_EQ(waitpid(child[pe], &status, options), child[pe]);
    CHECK(options ? WIFSTOPPED(status) : WIFSIGNALED(status));
}

static void be_first(void)
{
    uint64_t one = 1;

    wait_for_state(DEAD, 0);
    gshmem_status_t put = gshmem_putmem_nbi(&target, &one, sizeof one, DEAD), quiet = gshmem_quiet();
    CHECK_EQ(put ? put : quiet, GSHMEM_ERR_PEER_DEAD);

    wait_for_state(STOPPED, WUNTRACED);
    CHECK_OK(gshmem_uint64_p(&go_on, 1, 1));
    while (!__atomic_load_n(&under_way, __ATOMIC_ACQUIRE))
        usleep(1000);
    CHECK_EQ(kill(child[STOPPED], SIGKILL), 0);
    wait_for_state(STOPPED, 0);
    CHECK_OK(gshmem_set_lock(locks + which * FAR_APART));
    CHECK_OK(gshmem_clear_lock(locks + which * FAR_APART));
}

static void be_holder(void)
{
    uint64_t one = 1;

    while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE))
        usleep(1000);
    CHECK_OK(gshmem_putmem_nbi(&target, &one, sizeof one, STOPPED));
    CHECK_OK(gshmem_uint64_p(&under_way, 1, 0));
    CHECK_EQ(gshmem_clear_lock(locks + which * FAR_APART), GSHMEM_ERR_PEER_DEAD);
    CHECK_OK(gshmem_set_lock(locks + which * FAR_APART));
    CHECK_OK(gshmem_clear_lock(locks + which * FAR_APART));
}

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};

    be_on_host(pe > 1);
    CHECK_OK(gshmem_init_attr(&attr));
    CHECK((locks = gshmem_calloc(PES * FAR_APART, sizeof(long))));
    if (pe == 1)
        take_lock();
    CHECK_OK(gshmem_barrier_all());
    if (pe == DEAD || pe == STOPPED) {
        char byte;
        for (int i = 0; i < DEAD; i++)
            CHECK_EQ(read(met[pe - DEAD][0], &byte, 1), 1);
        raise(pe == DEAD ? SIGKILL : SIGSTOP);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(write(met[i][1], ".", 1), 1);
    if (pe == 0)
        be_first();
    if (pe == 1)
        be_holder();
}

int main(void)
{
    gshmem_uniqueid_t uid;

    setenv("GSHMEM_LOG", "none", 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    CHECK(pipe(met[0]) == 0 && pipe(met[1]) == 0);
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed check of PE 0 is the end of all */
            be_pe(&uid, pe);
            if (pe == 1)
                _exit(0);
            pause(); /* until all is done: nobody else is to be lost */
        }
    }
    be_pe(&uid, 0);
    int status;
    CHECK_EQ(waitpid(child[1], &status, 0), child[1]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(kill(child[2], SIGKILL), 0);
    _exit(0); /* the job is lost, and finalize would say so */
}
