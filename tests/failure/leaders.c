/* A PE dies after a round between nodes, which it has ended, while another one that had come is stopped: the round
 * succeeds for those that live. Starts its own three PEs by fork and a unique id.
 *
 *     leaders           the one that is stopped has a word to send still; each PE is on a node of its own
 *     leaders next      it has a word to read still, and a leader that has ended the round fails in the next one meanwhile,
 *                       which PE 1, on its node, would be missing in; PE 2 is on another node
 *
 * In the second step of the first PE 0 needs a word of PE 1, which PE 1 sends once it has PE 0's of the first; PE 2 needs none of
 * PE 1 but that of the first step. So PE 1 is stopped before PE 0 comes. */
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

enum { PES = 3, PAUSE_US = 300 * 1000, DEATH_MS = 5000, NEXT_MS = 10000 };

static bool has_next;
static int stopped = 1, dies = 2;

/* Of all processes. */
static struct shared {
    gshmem_uniqueid_t uid;
    atomic_bool made, comes, go, died;
    _Atomic int status[PES]; /* of the round, + 1 */
    _Atomic int next;        /* of PE 0's next round, + 1 */
} *shared;

static void be_pe(int pe)
{
    gshmem_init_attr_t attr = {.uid = &shared->uid, .pe = pe, .n_pes = PES};

    if (pe == 0) {
        CHECK_OK(gshmem_get_uniqueid(&shared->uid));
        atomic_store(&shared->made, true);
    }
    while (!atomic_load(&shared->made))
        usleep(1000);
    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_HOST), has_next && pe < 2 ? 2 : 1);
    CHECK_OK(gshmem_barrier_all());
    if (pe == stopped)
        atomic_store(&shared->comes, true);
    while (pe != stopped && !atomic_load(&shared->go))
        usleep(1000);
    const gshmem_status_t status = gshmem_sync_all();
    atomic_store(&shared->status[pe], 1 + (int)status);
    if (pe == dies)
        raise(SIGKILL);
    while (has_next && pe == 0 && !atomic_load(&shared->died))
        usleep(1000);
    if (has_next && pe == 0)
        atomic_store(&shared->next, 1 + (int)gshmem_sync_all());
    while (!atomic_load(&shared->status[0]) || !atomic_load(&shared->status[stopped]))
        usleep(1000);
    _exit(0);
}

int main(int argc, char **argv)
{
    pid_t child[PES];
    bool died = false;

    (void)argv;
    if (argc > 1) {
        has_next = true;
        stopped = 2;
        dies = 1;
    }
    setenv("GSHMEM_PRETENDED_NODES", has_next ? "2" : "3", 1);
    setenv("GSHMEM_PEER_TIMEOUT", "60", 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (int pe = 0; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0)
            be_pe(pe);
    }
    while (!atomic_load(&shared->comes))
        usleep(1000);
    usleep(PAUSE_US); /* so that it has come to the round; it passes either way */
    CHECK_EQ(kill(child[stopped], SIGSTOP), 0);
    while (!is_stopped(child[stopped]))
        usleep(1000);
    atomic_store(&shared->go, true);
    for (int ms = 0; ms < DEATH_MS && !died; ms++) {
        died = waitpid(child[dies], NULL, WNOHANG) == child[dies];
        usleep(1000);
    }
    atomic_store(&shared->died, died);
    for (int ms = 0; has_next && ms < NEXT_MS && !atomic_load(&shared->next); ms++)
        usleep(1000);
    usleep(PAUSE_US); /* so that the death is seen */
    CHECK_EQ(kill(child[stopped], SIGCONT), 0);
    for (int pe = 0; pe < PES; pe++) {
        if (pe != dies || !died)
            CHECK_EQ(waitpid(child[pe], NULL, 0), child[pe]);
        CHECK_EQ(atomic_load(&shared->status[pe]), 1 + (int)GSHMEM_OK);
    }
    CHECK(!has_next || atomic_load(&shared->next) > 1 + (int)GSHMEM_OK);
    return 0;
}
