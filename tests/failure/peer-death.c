/* A PE dies while others wait for it, and no launcher is there to notice: the waits end, with a
 * status that says so, in every PE, and soon.
 *
 * Starts its own PEs by fork and a unique id: peer-death SCENARIO N. The last PE is the one that
 * dies; PE 0 is the parent. */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "gshmem.h"
#include "../last.h"

static uint64_t flag;    /* symmetric: a variable of the program */
static long lock_word;

static int last_pe(void)
{
    return gshmem_n_pes() - 1;
}

static void die_if_last(void)
{
    if (gshmem_my_pe() == last_pe())
        raise(SIGKILL);
}

static void in_barrier(void)
{
    die_if_last();
    CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_PEER_DEAD, "has died");
    /* A team that lost a member stays lost. */
    CHECK_EQ(gshmem_barrier_all(), GSHMEM_ERR_PEER_DEAD);
}

static void in_reduce(void)
{
    static long in = 1, out;

    die_if_last();
    CHECK_FAILS(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &out, &in, 1), GSHMEM_ERR_PEER_DEAD,
                "has died");
}

static void in_wait(void)
{
    die_if_last();
    CHECK_FAILS(gshmem_uint64_wait_until(&flag, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_PEER_DEAD,
                "has died");
}

static void in_lock(void)
{
    if (gshmem_my_pe() == last_pe()) {
        CHECK_OK(gshmem_set_lock(&lock_word));
        for (int pe = 0; pe < last_pe(); pe++)
            CHECK_OK(gshmem_uint64_p(&flag, 1, pe));
        raise(SIGKILL);
    }
    CHECK_OK(gshmem_uint64_wait_until(&flag, GSHMEM_CMP_EQ, 1));
    CHECK_FAILS(gshmem_set_lock(&lock_word), GSHMEM_ERR_PEER_DEAD, "has died");
}

/* exit without finalize, with a failure: the others are told who and why. */
static void by_exit(void)
{
    if (gshmem_my_pe() == last_pe())
        exit(3);
    CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_ABORTED, "exited with status 3");
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"barrier", in_barrier}, {"reduce", in_reduce}, {"wait", in_wait},
    {"lock", in_lock},       {"exit", by_exit},
};

static void be_pe(const struct scenario *s, const gshmem_uniqueid_t *uid, int pe, int n)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = n};
    struct timespec start, end;

    CHECK_OK(gshmem_init_attr(&attr));
    last_waits_for_all();
    clock_gettime(CLOCK_MONOTONIC, &start);
    s->run();
    clock_gettime(CLOCK_MONOTONIC, &end);
    /* Not a benchmark: the promise is a second, a stuck wait would last until the test's limit. */
    CHECK(end.tv_sec - start.tv_sec < 10);
}

static bool died_as_it_should(const struct scenario *s, int status)
{
    if (strcmp(s->name, "exit") == 0)
        return WIFEXITED(status) && WEXITSTATUS(status) == 3;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int main(int argc, char **argv)
{
    const struct scenario *s = NULL;
    gshmem_uniqueid_t uid;
    pid_t child[64];
    int n = argc == 3 ? atoi(argv[2]) : 0;

    for (size_t i = 0; argc == 3 && i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(argv[1], scenarios[i].name) == 0)
            s = &scenarios[i];
    }
    if (!s || n < 2 || n > 64) {
        fprintf(stderr, "usage: %s barrier|reduce|wait|lock|exit N\n", argv[0]);
        return 2;
    }
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < n; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            be_pe(s, &uid, pe, n);
            _exit(0);
        }
    }
    be_pe(s, &uid, 0, n);
    for (int pe = 1; pe < n; pe++) {
        int status;
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        if (pe == n - 1)
            CHECK(died_as_it_should(s, status));
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0); /* the job is lost, and finalize would say so */
}
