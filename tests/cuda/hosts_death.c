/* A PE of another host dies while GPU memory is on its way to it and from it: what was asked of it ends with
 * that, buffers and memory are free again, and other hosts are reached as before.
 *
 * Starts its own PEs, each on a host of its own, pretended by host names, which takes root. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { PES = 3, VICTIM = PES - 1, BYTES = 4 << 20 };

static int *met; /* of all processes: how many PEs that live have left the barrier */

static void be_on_host(int host)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
}

/* It is stopped first, so that transfers fill all there is between the two; not before nobody waits for what it has to
 * say in the barrier, which may not have left its process. */
static void die(void)
{
    while (__atomic_load_n(met, __ATOMIC_ACQUIRE) != VICTIM)
        usleep(1000);
    pid_t self = getpid(), killer = fork();

    CHECK(killer >= 0);
    if (killer == 0) {
        kill(self, SIGSTOP);
        usleep(300000);
        kill(self, SIGKILL);
        _exit(0);
    }
    for (;;)
        pause();
}

static void use_up(char *gpu, char *own)
{
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < 10000 && !status; i++) {
        status = gshmem_putmem_nbi(gpu, own, BYTES, VICTIM);
        if (!status)
            status = gshmem_getmem_nbi(own, gpu, 1000, VICTIM);
    }
    status = status ? status : gshmem_quiet();
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    gshmem_quiet();
    CHECK_EQ(gshmem_putmem(gpu, own, BYTES, VICTIM), GSHMEM_ERR_PEER_DEAD);
}

static void live(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};
    char *found = malloc(BYTES);
    gshmem_team_t living;
    int other = 1 - pe;

    CHECK(found);
    be_on_host(pe);
    CHECK_OK(gshmem_init_attr(&attr));
    char *gpu = gshmem_calloc(1, BYTES), *own = gshmem_malloc(BYTES);
    CHECK(gpu && own);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, VICTIM, NULL, 0, &living));
    memset(found, 40 + pe, BYTES);
    CHECK_OK(gshmem_putmem(own, found, BYTES, pe));
    CHECK_OK(gshmem_barrier_all());
    if (pe == VICTIM)
        die();
    __atomic_add_fetch(met, 1, __ATOMIC_ACQ_REL);
    use_up(gpu, own);
    memset(found, 40 + pe, BYTES);
    CHECK_OK(gshmem_putmem(own, found, BYTES, pe)); /* gets have written to it */
    CHECK_OK(gshmem_putmem(gpu, own, BYTES, other));
    CHECK_OK(gshmem_quiet());
    CHECK_OK(gshmem_getmem(found, gpu, BYTES, other));
    for (int i = 0; i < BYTES; i++)
        CHECK_EQ(found[i], 40 + pe);
    free(found);
    CHECK_OK(gshmem_team_sync(living)); /* gshmem_finalize waits for nobody, as it fails */
    CHECK_EQ(gshmem_finalize(), GSHMEM_ERR_PEER_DEAD);
}

int main(void)
{
    gshmem_uniqueid_t uid;
    pid_t child[PES];
    int status;

    met = mmap(NULL, sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(met != MAP_FAILED);
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
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        CHECK(pe == VICTIM ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
