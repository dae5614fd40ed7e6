/* A PE leaves after the last round, of which it had all words, while another one that has come to
 * the round is stopped, and has a word to send still: the third one's kernel waits for that word,
 * and does not fail. For three PEs.
 *
 * In rounds of two steps, PE 2 needs words of PE 1, in the first step, and of PE 0. PE 0 needs one
 * of PE 1 in the second step, which PE 1 sends once it has PE 0's. So PE 1 is stopped before PE 0
 * comes. */
#define GSHMEM_ROUND_FLAT 1
#include <signal.h>

#include "kernel.h"
#include "../failure/stopped.h"

enum { PAUSE_US = 300 * 1000, LEFT_MS = 5000 };

static int64_t process; /* symmetric */
static int64_t leaves;  /* of PE 0: PE 2 is about to leave */

__global__ void meet(gshmem_status_t *status)
{
    *status = gshmem_barrier_all();
}

int main(void)
{
    int64_t other;

    setenv("GSHMEM_PEER_TIMEOUT", "1000", 1); /* a tenth of it is the time for words that are late */
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe();
    CHECK_EQ(gshmem_n_pes(), 3);
    gshmem_status_t *status = shared_array<gshmem_status_t>(1);
    process = getpid();
    CHECK_OK(gshmem_barrier_all());
    if (me == 0) {
        CHECK_OK(gshmem_getmem(&other, &process, sizeof other, 1));
        usleep(PAUSE_US); /* so that PE 1 has come to the round; it passes either way */
        CHECK_EQ(kill((pid_t)other, SIGSTOP), 0);
        while (!is_stopped(other))
            usleep(1000);
    }
    meet<<<1, 1>>>(status);
    if (me == 0) {
        for (int ms = 0; ms < LEFT_MS && !gshmem_int64_atomic_fetch(&leaves, 0); ms++)
            usleep(1000); /* PE 2 does not leave where PE 1 had not come */
        usleep(PAUSE_US); /* so that PE 2 is seen to leave */
        CHECK_EQ(kill((pid_t)other, SIGCONT), 0);
    }
    CHECK_LAUNCH();
    CHECK_EQ(*status, GSHMEM_OK);
    if (me == 2)
        gshmem_int64_atomic_set(&leaves, 1, 0);
    CHECK_OK(gshmem_finalize());
    return 0;
}
