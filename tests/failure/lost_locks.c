/* Locks when a PE dies that holds them, that is their home, or that has nothing to do with them.
 *
 * Three PEs share a host, and the fourth, which dies, is on another: both pretended by host names, which takes
 * root. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { PES = 4, VICTIM = PES - 1, FAR_APART = 8 };

/* Symmetric, in the heap: a lock of each home, several times over. */
static long *unrelated, *held, *homes;
static uint64_t died, through; /* symmetric: variables of the program */
static int asking[2]; /* a pipe with a byte of each survivor that needs no answer of the victim's any more */

static void be_on_host(int host)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Barriers do not end well any more. */
static void meet_survivors(void)
{
    static uint64_t times;

    times++;
    for (int pe = 0; pe < VICTIM; pe++)
        CHECK_OK(gshmem_uint64_atomic_add(&through, 1, pe));
    while (gshmem_uint64_atomic_fetch(&through, gshmem_my_pe()) < times * VICTIM)
        nap(1);
}

static long *of_home(long *locks, int i)
{
    return locks + i * FAR_APART;
}

static void die(void)
{
    for (int i = 0; i < PES; i++)
        CHECK_OK(gshmem_set_lock(of_home(held, i)));
    for (int pe = 0; pe < VICTIM; pe++)
        CHECK_OK(gshmem_uint64_p(&died, 1, pe));
    CHECK_OK(gshmem_quiet());
    for (int pe = 0; pe < VICTIM; pe++) {
        char byte;
        CHECK_EQ(read(asking[0], &byte, 1), 1);
    }
    nap(50); /* mostly they wait for locks by then */
    raise(SIGKILL);
}

/* PE 0 holds a lock that others wait for, and lets go long after they could know of the death. */
static void wait_through_it(int me)
{
    long *lock = of_home(unrelated, 0);
    uint64_t word = 0;

    if (me == 0) {
        while (gshmem_getmem(&word, &died, sizeof word, VICTIM) == GSHMEM_OK)
            nap(1);
        nap(300);
    } else {
        CHECK_OK(gshmem_set_lock(lock));
    }
    CHECK_OK(gshmem_clear_lock(lock));
    meet_survivors();
    for (int i = 0; i < 20; i++) {
        CHECK_OK(gshmem_set_lock(lock));
        CHECK_EQ(gshmem_test_lock(lock), 1);
        CHECK_OK(gshmem_clear_lock(lock));
    }
    meet_survivors();
}

/* For good, and for those who ask again. */
static void ask_for_held(void)
{
    for (int i = 0; i < PES; i++) {
        int answer;
        while ((answer = gshmem_test_lock(of_home(held, i))) == 1)
            ;
        CHECK_EQ(answer, -1);
        CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_PEER_DEAD);
        CHECK_EQ(gshmem_set_lock(of_home(held, i)), GSHMEM_ERR_PEER_DEAD);
        CHECK_EQ(gshmem_set_lock(of_home(held, i)), GSHMEM_ERR_PEER_DEAD);
        CHECK_EQ(gshmem_clear_lock(of_home(held, i)), GSHMEM_ERR_STATE);
    }
    meet_survivors();
}

/* Of as many locks as there are PEs, each next to the other, one has its home on the victim. */
static void ask_at_home(void)
{
    int gone = 0;

    for (int i = 0; i < PES; i++) {
        long *lock = of_home(homes, i);
        int answer;
        while ((answer = gshmem_test_lock(lock)) == 1)
            nap(1);
        gshmem_status_t set = answer == 0 ? GSHMEM_OK : gshmem_set_lock(lock);
        CHECK_EQ(set, answer == 0 ? GSHMEM_OK : GSHMEM_ERR_PEER_DEAD);
        if (set == GSHMEM_OK)
            CHECK_OK(gshmem_clear_lock(lock));
        gone += set != GSHMEM_OK;
    }
    CHECK_EQ(gone, 1);
    meet_survivors();
}

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};

    CHECK_OK(gshmem_init_attr(&attr));
    unrelated = gshmem_calloc(3 * PES * FAR_APART, sizeof(long));
    CHECK(unrelated);
    held = of_home(unrelated, PES);
    homes = of_home(unrelated, 2 * PES);
    if (pe == 0)
        CHECK_OK(gshmem_set_lock(of_home(unrelated, 0)));
    CHECK_OK(gshmem_barrier_all());
    if (pe == VICTIM)
        die();
    CHECK_OK(gshmem_uint64_wait_until(&died, GSHMEM_CMP_EQ, 1));
    CHECK_OK(gshmem_quiet());
    CHECK_EQ(write(asking[1], "", 1), 1);
    wait_through_it(pe);
    ask_for_held();
    ask_at_home();
}

int main(void)
{
    gshmem_uniqueid_t uid;
    pid_t child[PES];

    setenv("GSHMEM_LOG", "none", 0);
    be_on_host(0);
    CHECK_EQ(pipe(asking), 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            be_on_host(pe == VICTIM);
            be_pe(&uid, pe);
            _exit(0);
        }
    }
    be_pe(&uid, 0);
    for (int pe = 1; pe < PES; pe++) {
        int status;
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        CHECK(pe == VICTIM ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0); /* the job is lost, and finalize would say so */
}
