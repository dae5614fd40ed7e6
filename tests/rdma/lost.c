/* A PE dies in the middle of traffic: each call that needs it ends with a status, and soon; what the
 * others do among themselves, on the same host and on the other, goes on.
 *
 *     lost N
 *
 * Starts its PEs itself, since a launcher would end the job: the first half are on one pretended
 * host, the others on another, each of which takes the device of its number if there are two. The
 * last PE is the one that dies. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "../pe/pe.h"

enum { MOST_PES = 16, BYTES = 100000 };

/* Not a benchmark: a second or two are promised, the default of queue pairs is a minute. The emulated processor may
 * stand still meanwhile. */
#define LIMIT_NS 45000000000u

static struct shared {
    gshmem_uniqueid_t uid;
    int begun;     /* the unique id is there */
    int met;       /* PEs that have left the barrier, which the victim's messages may not have before */
    uint64_t when; /* it was lost */
    int seen;      /* PEs that have seen the loss */
    int through;
} *shared;

static uint64_t cell, never;       /* symmetric */
static unsigned char block[BYTES]; /* symmetric */
static int victim;                 /* the last PE */

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void count(int *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_SEQ_CST);
}

static void until(int *what, int value)
{
    while (__atomic_load_n(what, __ATOMIC_SEQ_CST) < value)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- What is under way: each goes on until a call fails, and gives its status ---- */

static gshmem_status_t in_get(void)
{
    static unsigned char back[BYTES];
    gshmem_status_t status;

    while (!(status = gshmem_getmem(back, block, BYTES, victim)))
        ;
    return status;
}

static gshmem_status_t in_put(void)
{
    static unsigned char data[BYTES];
    gshmem_status_t status;

    do
        status = gshmem_putmem_nbi(block, data, BYTES, victim);
    while (!status && !(status = gshmem_quiet()));
    return status;
}

static gshmem_status_t in_atomic(void)
{
    gshmem_status_t status;
    uint64_t old;

    while (!(status = gshmem_uint64_atomic_fetch_add_nbi(&old, &cell, 1, victim)) &&
           !(status = gshmem_quiet()))
        ;
    return status;
}

static gshmem_status_t in_put_signal(void)
{
    gshmem_status_t status;
    uint64_t word = 1;

    while (!(status = gshmem_putmem_signal(block, &word, 8, &cell, 1, GSHMEM_SIGNAL_ADD, victim)) &&
           !(status = gshmem_quiet()))
        ;
    return status;
}

/* Where the victim is mapped: its memory is still there, and only what waits for it ends. */
static gshmem_status_t in_wait(void)
{
    return gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1);
}

static const struct call {
    const char *name;
    gshmem_status_t (*run)(void);
} calls[] = {{"put", in_put}, {"get", in_get}, {"fetch", in_atomic}, {"put_signal", in_put_signal}},
  waits = {"wait", in_wait};

/* ---- Afterwards ---- */

static void check_loss(const char *call, gshmem_status_t status)
{
    uint64_t took = now() - shared->when;
    const char *line = "";

    gshmem_last_error(&line);
    CHECK(shared->when); /* not before it was lost */
    if (status != GSHMEM_ERR_PEER_DEAD)
        CHECK_FAIL("%s: %s: %s", call, gshmem_status_name(status), line);
    printf("PE %d: %s ended after %.1f s: %s\n", me, call, (double)took / 1e9, line);
    fflush(stdout);
    CHECK(took < LIMIT_NS);
    if (gshmem_ptr(&cell, victim))
        return;
    status = gshmem_putmem(block, &cell, 8, victim); /* and so does what comes later */
    CHECK((status ? status : gshmem_quiet()) != GSHMEM_OK);
}

static void go_on(gshmem_team_t left)
{
    static long one = 1, sum;
    const int mates = n - 1, other = (me + n / 2) % mates;
    uint64_t word = (uint64_t)me + 1000, back = 0;

    for (int i = 0; i < 20; i++) {
        CHECK_OK(gshmem_putmem(&block[8 * (size_t)me], &word, 8, other));
        CHECK_OK(gshmem_getmem(&back, &block[8 * (size_t)me], 8, other));
        CHECK_EQ(back, word);
        CHECK_OK(gshmem_uint64_atomic_add(&cell, 1, other));
        CHECK_OK(gshmem_quiet());
        CHECK_OK(gshmem_long_sum_reduce(left, &sum, &one, 1));
        CHECK_EQ(sum, mates);
        CHECK_OK(gshmem_team_sync(left));
    }
}

/* ---- The job ---- */

static void be_on_host(int host)
{
    char name[32], device[64];

    snprintf(name, sizeof name, "pretended-%d", host);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0)
        SKIP("host names take root");
    snprintf(name, sizeof name, "rdma%d", host);
    snprintf(device, sizeof device, "/sys/class/infiniband/rdma%d", host);
    if (access(device, F_OK) == 0)
        setenv("GSHMEM_IB_HCA", name, 1);
}

static void be_pe(int pe, int pes)
{
    gshmem_team_t left = GSHMEM_TEAM_INVALID;

    be_on_host(pe * 2 / pes);
    if (pe == 0) {
        CHECK_OK(gshmem_get_uniqueid(&shared->uid));
        count(&shared->begun);
    }
    until(&shared->begun, 1);
    gshmem_init_attr_t attr = {.uid = &shared->uid, .pe = pe, .n_pes = pes};
    CHECK_OK(gshmem_init_attr(&attr));
    begin();
    victim = n - 1;
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n - 1, NULL, 0, &left));
    for (int i = 0; i < n; i++)
        CHECK_OK(gshmem_uint64_atomic_add(&cell, 1, i));
    barrier();
    count(&shared->met);
    if (me == victim) {
        until(&shared->met, n);
        usleep(300000); /* mostly the others are at it by then */
        shared->when = now();
        raise(SIGKILL);
    }
    const struct call *call = gshmem_ptr(&cell, victim) ? &waits : &calls[pe % 4];
    check_loss(call->name, call->run());
    count(&shared->seen);
    until(&shared->seen, n - 1);
    gshmem_quiet(); /* what failed while others were told */
    go_on(left);
    count(&shared->through);
    until(&shared->through, n - 1);
}

int main(int argc, char **argv)
{
    const int pes = argc == 2 ? atoi(argv[1]) : 0;
    pid_t child[MOST_PES];

    if (pes < 4 || pes > MOST_PES || pes % 2)
        CHECK_FAIL("usage: lost N, even, 4 to %d", MOST_PES);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (int pe = 0; pe < pes; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            be_pe(pe, pes);
            _exit(0); /* the job is lost, and finalize would say so */
        }
    }
    for (int pe = 0; pe < pes; pe++) {
        int status;
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        if (pe == pes - 1)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else if (!WIFEXITED(status) || WEXITSTATUS(status))
            CHECK_FAIL("PE %d ended with %#x", pe, status);
    }
    return 0;
}
