/* GSHMEM_CHECK=races: a lock of cells whose holder lives is waited for, however long the holder has no CPU; a dead
 * PE's is taken over. Starts its own two PEs by fork and a unique id. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "runtime/races/parts.h"

#include "check.h"

static int64_t word; /* symmetric */
static atomic_bool given_back;

static void set_locks(uint32_t holder)
{
    struct races *r = job->races;

    for (int i = 0; i < RACES_LOCKS; i++)
        atomic_store(&r->shared->pe[0].lock[i], holder);
}

/* As PE 1 would that was stopped for a while. */
static void *give_back_late(void *unused)
{
    (void)unused;
    sleep(3);
    atomic_store(&given_back, true);
    set_locks(0);
    return NULL;
}

static void be_pe(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = 2};

    CHECK_OK(gshmem_init_attr(&attr));
    CHECK(job->races);
    CHECK_OK(gshmem_barrier_all());
}

int main(void)
{
    const int64_t value = 1;
    gshmem_uniqueid_t uid;
    pthread_t thread;

    setenv("GSHMEM_CHECK", "races", 1);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        be_pe(&uid, 1);
        for (;;)
            pause();
    }
    be_pe(&uid, 0);
    set_locks(1 + 1);
    CHECK_EQ(pthread_create(&thread, NULL, give_back_late, NULL), 0);
    CHECK_OK(gshmem_putmem(&word, &value, sizeof value, 0));
    CHECK(atomic_load(&given_back));
    CHECK_EQ(pthread_join(thread, NULL), 0);

    set_locks(1 + 1);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_OK(gshmem_putmem(&word, &value, sizeof value, 0));
    fflush(NULL);
    _exit(0); /* the other PE has died */
}
