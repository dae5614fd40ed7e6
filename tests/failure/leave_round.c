/* A PE dies after all PEs of its node have arrived at a round between nodes, and before their leader has heard from the
 * other node. That one comes as well, so that the round succeeds for all that live. Starts its own five PEs by fork
 * and a unique id: PE 0 leads PEs 1 and 2, and PE 3 leads PE 4.
 *
 * PE 0 is stopped while it waits for PE 3, so that PE 2 learns of the death first. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"
#include "stopped.h"

enum { PES = 5, STOPPED = 0, DIES = 1, WAITS = 2, LAST = 3, PAUSE_US = 300 * 1000, LATE_MS = 5000 };

/* Of all processes. */
static struct shared {
    gshmem_uniqueid_t uid;
    atomic_bool made, go;
    atomic_int come;
    _Atomic int status[PES]; /* of the round, + 1 */
} *shared;

static void be_pe(int pe)
{
    gshmem_init_attr_t attr = {.uid = &shared->uid, .pe = pe, .n_pes = PES};
    static int64_t sum, one = 1;

    if (pe == 0) {
        CHECK_OK(gshmem_get_uniqueid(&shared->uid));
        atomic_store(&shared->made, true);
    }
    while (!atomic_load(&shared->made))
        usleep(1000);
    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_HOST), pe < LAST ? LAST : PES - LAST);
    CHECK_OK(gshmem_barrier_all());
    atomic_fetch_add(&shared->come, 1);
    while (pe == LAST && !atomic_load(&shared->go))
        usleep(1000);
    const gshmem_status_t status =
        gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, &sum, &one, 1);
    CHECK(status || sum == PES);
    atomic_store(&shared->status[pe], 1 + (int)status);
    for (int i = 0; i < PES; i++) {
        while (i != DIES && !atomic_load(&shared->status[i]))
            usleep(1000);
    }
    CHECK_EQ(gshmem_sync_all(), GSHMEM_ERR_PEER_DEAD);
    _exit(0);
}

int main(void)
{
    pid_t child[PES];
    bool tried = true;

    setenv("GSHMEM_PRETENDED_NODES", "2", 1);
    setenv("GSHMEM_PEER_TIMEOUT", "60", 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (int pe = 0; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0)
            be_pe(pe);
    }
    while (atomic_load(&shared->come) < PES)
        usleep(1000);
    usleep(PAUSE_US); /* so that they are in the round, and have sent their words */
    CHECK_EQ(kill(child[STOPPED], SIGSTOP), 0);
    while (!is_stopped(child[STOPPED]))
        usleep(1000);
    atomic_store(&shared->go, true);
    for (int ms = 0; !atomic_load(&shared->status[LAST]); ms++) {
        usleep(1000);
        if (ms == LATE_MS) { /* it was stopped before it had sent its word: this run shows nothing */
            tried = false;
            CHECK_EQ(kill(child[STOPPED], SIGCONT), 0);
        }
    }
    CHECK_EQ(kill(child[DIES], SIGKILL), 0);
    CHECK_EQ(waitpid(child[DIES], NULL, 0), child[DIES]);
    usleep(PAUSE_US); /* so that the death is seen */
    CHECK(!tried || atomic_load(&shared->status[WAITS]) == 0);
    CHECK_EQ(kill(child[STOPPED], SIGCONT), 0);
    for (int pe = 0; pe < PES; pe++) {
        int end = 0;
        if (pe == DIES)
            continue;
        CHECK_EQ(waitpid(child[pe], &end, 0), child[pe]);
        CHECK_EQ(end, 0);
        CHECK_EQ(atomic_load(&shared->status[pe]), 1 + (int)GSHMEM_OK);
    }
    return 0;
}
