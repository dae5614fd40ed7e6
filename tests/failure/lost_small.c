/* Small operations to a PE that dies, while some wait in a batch: the next quiet reports it, once;
 * calls that wait for room end; later ones fail; and those to other PEs arrive.
 *
 * PE 1, on a node of its own, is stopped, so that nothing arrives, and is killed while PE 0 waits. PE 0 stops it
 * once all have left the barrier: what a PE sent for that may leave it after it has left the barrier.
 * With an argument PE 0 makes so many operations that it waits for room. With "continued" PE 1 is not
 * killed but continued, and all of them arrive. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

enum { TABLE = 1000, FEW = 50, MANY = 5000000 };

static long table[TABLE];
static long ready; /* of PE 0: how many others have left the barrier */
static int go[2];  /* a pipe that is closed when PE 0 wants nothing more of the others */

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = 3};

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
    while (atomic_load((_Atomic long *)&table[0]) != FEW) /* it calls nothing */
        usleep(1000);
    CHECK_EQ(read(go[0], &end, 1), 0);
    _exit(0);
}

/* When this PE waits, as far as that can be known; the result is the same if it does not yet. */
static void signal_soon(pid_t other, int number)
{
    const pid_t killer = fork();

    CHECK(killer >= 0);
    if (killer)
        return;
    usleep(100000);
    kill(other, number);
    _exit(0);
}

static void continue_and_count(pid_t other)
{
    int how;

    signal_soon(other, SIGCONT);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(gshmem_long_atomic_add(&table[i % TABLE], 1, 1));
    CHECK_OK(gshmem_quiet());
    for (int i = 1; i < TABLE; i++)
        CHECK_EQ(gshmem_long_g(&table[i], 1), MANY / TABLE);
    CHECK_OK(gshmem_long_p(&table[0], FEW, 1));
    CHECK_OK(gshmem_long_p(&table[0], FEW, 2));
    CHECK_OK(gshmem_quiet());
    close(go[1]);
    CHECK_EQ(waitpid(other, &how, 0), other);
    CHECK_EQ(how, 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    const int times = argc > 1 ? MANY : FEW;
    gshmem_status_t status = GSHMEM_OK;
    gshmem_uniqueid_t uid;
    int how;

    setenv("GSHMEM_LOG", "none", 0);
    setenv("GSHMEM_PRETENDED_NODES", "3", 1);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    CHECK_EQ(pipe(go), 0);
    const pid_t dies = other_pe(&uid, 1), lives = other_pe(&uid, 2);
    be_pe(&uid, 0);
    CHECK_OK(gshmem_long_wait_until(&ready, GSHMEM_CMP_EQ, 2));
    CHECK_EQ(kill(dies, SIGSTOP), 0);
    CHECK_EQ(waitpid(dies, &how, WUNTRACED), dies);
    CHECK(WIFSTOPPED(how));
    if (argc > 1 && strcmp(argv[1], "continued") == 0)
        continue_and_count(dies);
    if (times == MANY)
        signal_soon(dies, SIGKILL);
    for (int i = 0; i < times && !status; i++)
        status = i % 1000 < 990 ? gshmem_long_p(&table[i % TABLE], i, 1)
                                : gshmem_long_atomic_add(&table[i % TABLE], i, 1);
    for (int i = 0; i < FEW; i++)
        CHECK_OK(gshmem_long_atomic_inc(&table[0], 2));
    if (times == FEW) {
        CHECK_OK(status);
        kill(dies, SIGKILL);
    }
    const gshmem_status_t quiet = gshmem_quiet();
    CHECK(status == GSHMEM_OK || status == GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(quiet, GSHMEM_ERR_PEER_DEAD); /* some were on their way in either case */
    CHECK_OK(gshmem_quiet());
    CHECK_EQ(gshmem_long_p(&table[0], 1, 1), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_long_atomic_add(&table[0], 1, 1), GSHMEM_ERR_PEER_DEAD);
    CHECK_OK(gshmem_quiet());
    close(go[1]);
    CHECK_EQ(waitpid(lives, &how, 0), lives);
    CHECK_EQ(how, 0);
    _exit(0); /* the job is lost, and finalize would say so */
}
