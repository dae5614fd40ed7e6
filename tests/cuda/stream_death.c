/* A PE dies while kernels wait for it: on a stream, where the error policy is told, and for a call
 * of the CPU's, which says so. No wait outlives it. Starts its own PEs, by fork and a unique id. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "gshmem.h"
#include "gpu.h"

enum { PES = 2 };

static atomic_int told;

static void handler(gshmem_status_t status, const char *text, void *nothing)
{
    (void)text;
    (void)nothing;
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    told++;
}

static void join(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};

    CHECK_OK(gshmem_init_attr(&attr));
}

int main(void)
{
    gshmem_uniqueid_t uid;
    int status;

    CHECK_OK(gshmem_get_uniqueid(&uid));
    pid_t child = fork();
    CHECK(child >= 0);
    join(&uid, child == 0);
    long *words = gshmem_calloc(8, sizeof *words);
    CHECK(words);
    open_gpu();
    gshmem_stream_t s = new_stream(), other = new_stream();
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words, words, 1));
    if (child == 0)
        raise(SIGKILL);

    gshmem_set_error_handler(handler, NULL);
    CHECK_OK(gshmem_signal_wait_until_on_stream((uint64_t *)words + 1, GSHMEM_CMP_NE, 0, s));
    CHECK_OK(gshmem_barrier_all_on_stream(other));
    CHECK_EQ(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words, words, 1), GSHMEM_ERR_PEER_DEAD);
    finish(s);
    finish(other);
    while (told < 2)
        ;
    end_stream(s);
    end_stream(other);
    close_gpu();
    CHECK_EQ(gshmem_finalize(), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return 0;
}
