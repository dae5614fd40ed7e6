/* A PE dies, or ends the job, while kernels of the others wait for it, put to it, or are held up in a
 * channel full of what is for it: the kernels end, with a status that says why, and soon. (Where memory
 * is mapped, that of a PE that has died is still there, and puts to it succeed: they are for PEs that
 * are reached through the proxy.)
 *
 *     death SCENARIO N [hosts]
 *
 * Starts its own N PEs by fork and a unique id, so that no launcher is there to notice; the last one
 * is the one that dies. With `hosts` each has a host name of its own, and so reaches none of the
 * others by mapping them; that takes root. */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kernel.h"

static int *begun; /* of all processes: how many PEs but the last wait for nothing of its any more */

static int last_pe(void)
{
    return gshmem_n_pes() - 1;
}

struct target {
    char *dest;       /* symmetric */
    char *source;     /* this PE's own */
    uint64_t *signal; /* symmetric; never set */
    size_t bytes;
    int pe;
    char *large; /* symmetric, 4 MiB */
};

/* Each thread goes on until it gets a status. */

__global__ void wait_for_it(struct target t, gshmem_status_t *status)
{
    gshmem_status_t one = gshmem_uint64_wait_until(t.signal, GSHMEM_CMP_EQ, 1);

    status[blockIdx.x * blockDim.x + threadIdx.x] = one;
}

__global__ void put_to_it(struct target t, gshmem_status_t *status)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    gshmem_status_t one;

    do {
        one = gshmem_putmem_nbi(t.dest + thread * 16, t.source, 8, t.pe);
        if (!one)
            one = gshmem_quiet();
    } while (!one);
    status[thread] = one;
}

__global__ void get_from_it(struct target t, gshmem_status_t *status)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    gshmem_status_t one;

    do
        one = gshmem_getmem(t.source + thread * 16, t.dest, 8, t.pe);
    while (!one);
    status[thread] = one;
}

/* Its failure goes to the error policy, which ends the job, with a line that names the call. */
__global__ void fetch_from_it(struct target t, gshmem_status_t *status)
{
    while (!gshmem_uint64_g(t.signal, t.pe))
        ;
    *status = GSHMEM_OK;
}

/* More than the channel and the network take at once, again and again: a fast machine brings the first
 * of it before the PE dies. */
__global__ void fill_it(struct target t, gshmem_status_t *status)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    gshmem_status_t one = GSHMEM_OK;

    while (!one) {
        for (int i = 0; i < 2000 && !one; i++)
            one = gshmem_putmem_nbi(t.dest, t.source, t.bytes, t.pe);
        if (!one)
            one = gshmem_quiet();
    }
    status[thread] = one;
}

/* A team's collectives end with its first member, and do not come back. */
__global__ void meet_it(struct target t, gshmem_status_t *status)
{
    gshmem_status_t one;

    do
        one = gshmem_barrier_all_block();
    while (!one);
    if (gshmem_fcollectmem_block(GSHMEM_TEAM_WORLD, t.dest, t.dest + 64, 1) != one)
        one = GSHMEM_OK;
    status[threadIdx.x] = one;
}

__global__ void gather_with_it(struct target t, gshmem_status_t *status)
{
    const size_t bytes = 16384; /* more than comes along with a round */
    gshmem_status_t one;

    do
        one = gshmem_broadcastmem_block(GSHMEM_TEAM_WORLD, t.dest, t.dest + bytes, bytes, 0);
    while (!one);
    if (gshmem_alltoallmem_block(GSHMEM_TEAM_WORLD, t.dest, t.dest + bytes, bytes / 8) != one)
        one = GSHMEM_OK;
    status[threadIdx.x] = one;
}

/* More than is done soon. */
__global__ void put_to_neighbour(char *dest, char *source, size_t bytes, int times, int pe)
{
    for (int i = 0; i < times; i++)
        gshmem_putmem_nbi(dest, source, bytes, pe);
}

/* Those that are left: what the kernel was told of is not told again, and a quiet of the host waits for what
 * kernels have put to the living, and finds nothing wrong with that. */
static void go_on_without_it(struct target t)
{
    enum { TIMES = 24 };
    const size_t bytes = (size_t)4 << 20;
    const int left = gshmem_n_pes() - 1, next = (gshmem_my_pe() + 1) % left;
    char *source = shared_array<char>(bytes), last = 0;

    CHECK_OK(gshmem_quiet());
    memset(source, 42, bytes);
    put_to_neighbour<<<1, 1>>>(t.large, source, bytes, TIMES, next);
    CHECK_LAUNCH();
    CHECK_OK(gshmem_quiet());
    CHECK_OK(gshmem_getmem(&last, t.large + bytes - 1, 1, next));
    CHECK_EQ(last, 42);
    CHECK_OK(gshmem_signal_set(t.signal, 7, next));
    (void)gshmem_quiet(); /* the neighbour may be gone before it has acknowledged that */
    while (__atomic_load_n(t.signal, __ATOMIC_ACQUIRE) != 7) /* the neighbour needs this PE until then */
        usleep(1000);
}

static const struct scenario {
    const char *name;
    void (*kernel)(struct target t, gshmem_status_t *status);
    int blocks, threads;
    gshmem_status_t expected; /* of each thread */
    bool stopped; /* it first stops, and is killed after a while in which others fill what there is */
} scenarios[] = {
    {"wait", wait_for_it, 4, 33, GSHMEM_ERR_PEER_DEAD, false},
    {"put", put_to_it, 1, 1, GSHMEM_ERR_PEER_DEAD, false},
    {"get", get_from_it, 3, 8, GSHMEM_ERR_PEER_DEAD, false},
    {"fetch", fetch_from_it, 1, 1, GSHMEM_ERR_PEER_DEAD, false},
    {"meet", meet_it, 1, 33, GSHMEM_ERR_PEER_DEAD, false},
    {"gather", gather_with_it, 1, 33, GSHMEM_ERR_PEER_DEAD, false},
    {"full", fill_it, 1, 1, GSHMEM_ERR_PEER_DEAD, true},
    {"silent", fill_it, 1, 1, GSHMEM_ERR_PEER_DEAD, true},
    {"exit", wait_for_it, 4, 33, GSHMEM_ERR_ABORTED, false},
};

/* Ends without a word, or with exit, which tells the others. One that is silent is not killed before
 * they have given it up. */
static void be_last(const struct scenario *s)
{
    usleep(100000); /* mostly the others' kernels are at it by then */
    if (strcmp(s->name, "exit") == 0)
        exit(3);
    if (strcmp(s->name, "full") == 0) {
        pid_t me = getpid();
        if (fork() == 0) {
            usleep(500000); /* if less fits into it than there is, the kernel sees the death in its next put */
            kill(me, SIGKILL);
            _exit(0);
        }
    }
    raise(s->stopped ? SIGSTOP : SIGKILL);
}

static void be_pe(const struct scenario *s, const gshmem_uniqueid_t *uid, int pe, int n)
{
    const int threads = s->blocks * s->threads;
    gshmem_init_attr_t attr = {};
    struct target t;

    attr.uid = uid;
    attr.pe = pe;
    attr.n_pes = n;
    CHECK_OK(gshmem_init_attr(&attr));
    t.bytes = 65536;
    t.dest = symmetric_array<char>(t.bytes);
    t.signal = symmetric_array<uint64_t>(1);
    t.pe = last_pe();
    t.large = symmetric_array<char>((size_t)4 << 20);
    CHECK_OK(gshmem_barrier_all());
    if (pe == last_pe()) { /* what it has to say in the barrier may not have left its process before */
        while (__atomic_load_n(begun, __ATOMIC_ACQUIRE) != n - 1)
            usleep(1000);
        be_last(s);
    }
    __atomic_add_fetch(begun, 1, __ATOMIC_ACQ_REL);
    t.source = shared_array<char>(t.bytes);
    gshmem_status_t *status = shared_array<gshmem_status_t>(threads);

    s->kernel<<<s->blocks, s->threads>>>(t, status);
    CHECK_LAUNCH();
    /* Another host sees a connection end, whyever it did. */
    gshmem_status_t expected =
        gshmem_ptr(t.dest, t.pe) ? s->expected : GSHMEM_ERR_PEER_DEAD;
    for (int i = 0; i < threads; i++)
        CHECK_EQ(status[i], expected);
    if (s->kernel == put_to_it)
        go_on_without_it(t);
}

static void host_of_my_own(int pe)
{
    char name[32];

    snprintf(name, sizeof name, "pretended-%d", pe);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
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
    int n = argc >= 3 ? atoi(argv[2]) : 0;

    for (const struct scenario &one : scenarios) {
        if (argc >= 3 && strcmp(argv[1], one.name) == 0)
            s = &one;
    }
    if (!s || n < 2 || n > 64)
        CHECK_FAIL("usage: death wait|put|get|fetch|meet|gather|full|silent|exit N [hosts]");
    bool hosts = argc > 3 && strcmp(argv[3], "hosts") == 0;

    if (hosts)
        host_of_my_own(0);
    begun = (int *)mmap(NULL, sizeof *begun, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(begun != MAP_FAILED);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < n; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            if (hosts)
                host_of_my_own(pe);
            be_pe(s, &uid, pe, n);
            _exit(0);
        }
    }
    be_pe(s, &uid, 0, n);
    for (int pe = 1; pe < n; pe++) {
        int status;
        if (pe == n - 1 && s->stopped)
            kill(child[pe], SIGKILL);
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        if (pe == n - 1)
            CHECK(died_as_it_should(s, status));
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0); /* the job is lost, and finalize would say so */
}
