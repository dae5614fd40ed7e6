/* Threads that fetch from a PE that dies, at the same time: each call that was waiting fails, and so do later ones;
 * none hangs, and fetches from another PE go on. PE 1, on a node of its own, is stopped while all threads fetch, so
 * that all wait, and then it is killed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { THREADS = 10, BEFORE = 50 };

static long value[THREADS]; /* symmetric: its index on each PE */
static long counter;
static long ready; /* of PE 0: how many others have left the barrier */
static int go[2];  /* a pipe that is closed when PE 0 wants nothing more of the others */
static _Atomic int threads_fetch; /* how many threads have fetched BEFORE times */

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {
        .uid = uid, .pe = pe, .n_pes = 3, .thread_level = GSHMEM_THREAD_MULTIPLE};

    for (int i = 0; i < THREADS; i++)
        value[i] = i;
    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_OK(gshmem_barrier_all());
}

static pid_t other_pe(const gshmem_uniqueid_t *uid, int pe)
{
    const pid_t other = fork();
    char end;

    CHECK(other >= 0);
    if (other)
        return other;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(go[1]);
    be_pe(uid, pe);
    CHECK_OK(gshmem_long_atomic_inc(&ready, 0));
    CHECK_OK(gshmem_quiet());
    CHECK_EQ(read(go[0], &end, 1), 0);
    _exit(0);
}

/* Gets, and atomics, in turn. */
static gshmem_status_t fetch(long thread, long i, int pe)
{
    gshmem_status_t status;
    long got = -1;
    uint64_t old;

    if (i % 2)
        return gshmem_path_atomic(GSHMEM_CTX_DEFAULT, GSHMEM_AMO_ADD, GSHMEM_TYPE_INT64, &counter, 1,
                                  0, &old, pe);
    if (!(status = gshmem_getmem(&got, &value[thread], sizeof got, pe)))
        CHECK_EQ(got, thread);
    return status;
}

static void *work(void *which)
{
    const long thread = (long)which;
    gshmem_status_t status = GSHMEM_OK;

    for (long i = 0; i < BEFORE; i++)
        CHECK_OK(fetch(thread, i, 1));
    atomic_fetch_add(&threads_fetch, 1);
    for (long i = 0; !status; i++)
        status = fetch(thread, i, 1);
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    for (long i = 0; i < 2; i++)
        CHECK_EQ(fetch(thread, i, 1), GSHMEM_ERR_PEER_DEAD);
    for (long i = 0; i < BEFORE; i++)
        CHECK_OK(fetch(thread, i, 2));
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    gshmem_uniqueid_t uid;
    int how;

    setenv("GSHMEM_LOG", "none", 0);
    setenv("GSHMEM_PRETENDED_NODES", "3", 1);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    CHECK_EQ(pipe(go), 0);
    const pid_t dies = other_pe(&uid, 1), lives = other_pe(&uid, 2);
    be_pe(&uid, 0);
    CHECK_OK(gshmem_long_wait_until(&ready, GSHMEM_CMP_EQ, 2));
    for (long i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    while (atomic_load(&threads_fetch) < THREADS)
        usleep(1000);
    CHECK_EQ(kill(dies, SIGSTOP), 0);
    CHECK_EQ(waitpid(dies, &how, WUNTRACED), dies);
    CHECK(WIFSTOPPED(how));
    usleep(20000); /* all wait by now, most likely; the result is the same if they do not yet */
    CHECK_EQ(kill(dies, SIGKILL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    CHECK_OK(gshmem_quiet());
    close(go[1]);
    CHECK_EQ(waitpid(lives, &how, 0), lives);
    CHECK_EQ(how, 0);
    _exit(0); /* the job is lost, and finalize would say so */
}
