/* A PE dies to which no PE on another host has ever talked, nor it to them, and its neighbour computes:
 * all who wait learn of it, since its host tells the others. What does not need it goes on.
 *
 * Three hosts of two PEs, pretended by host names, which takes root; the last PE is the one that dies. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { PES = 6, PER_HOST = 2, VICTIM = PES - 1, NEIGHBOUR = PES - 2 };

static uint64_t never, block[PES]; /* symmetric: variables of the program */
static int ready[2];   /* a pipe with a byte of each who has begun: none of GSHMEM's, which would be talk */
static int through[2]; /* a pipe that those who wait hold open */

static void be_on_host(int host)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
}

static void learn_of_it(int me)
{
    uint64_t word = 1;

    CHECK_FAILS(gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_PEER_DEAD, "PE 5");
    CHECK_FAILS(gshmem_putmem(&never, &word, 8, VICTIM), GSHMEM_ERR_PEER_DEAD, "PE 5");
    CHECK_OK(gshmem_putmem(&block[me], &word, 8, (me + PER_HOST) % VICTIM));
    CHECK_OK(gshmem_quiet());
    CHECK_OK(gshmem_getmem(&word, &block[me], 8, NEIGHBOUR));
}

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};
    struct timespec start, end;
    char byte;

    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_OK(gshmem_barrier_all());
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (pe == VICTIM) {
        for (int others = 0; others < PES - 1; others++)
            CHECK_EQ(read(ready[0], &byte, 1), 1);
        raise(SIGKILL);
    }
    CHECK_EQ(write(ready[1], "", 1), 1);
    if (pe != NEIGHBOUR)
        learn_of_it(pe);
    close(through[1]);
    /* The neighbour calls nothing of GSHMEM, and nobody ends, until all are through. */
    CHECK_EQ(read(through[0], &byte, 1), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    /* Not a benchmark: it is a second or two, a stuck wait would last until the test's limit. */
    CHECK(end.tv_sec - start.tv_sec < 15);
}

int main(void)
{
    gshmem_uniqueid_t uid;
    pid_t child[PES];
    int status;

    be_on_host(0);
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(through), 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            be_on_host(pe / PER_HOST);
            be_pe(&uid, pe);
            _exit(0);
        }
    }
    be_pe(&uid, 0);
    for (int pe = 1; pe < PES; pe++) {
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        if (pe == VICTIM)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0); /* the job is lost, and finalize would say so */
}
