/* A host is lost while PEs on the others are in all kinds of calls that need it: each of these calls
 * ends, with a status that says why, within GSHMEM_PEER_TIMEOUT; what the others do among themselves
 * goes on; and finalize returns.
 *
 *     lost_host FILE
 *
 * The last third of the PEs are on the host that will be lost. FILE is of 32 bytes, four numbers: how
 * many PEs are ready; when the host was lost (ns of the monotonic clock), once it was; how many
 * PEs have seen its loss, and how many have done without it, together; how many are through. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "../pe/pe.h"

enum { READY, WHEN, SEEN, THROUGH, WORDS };

/* Beyond the timeout, for a loaded machine; a call that is stuck would last until the test's limit. */
#define SLACK_NS 10000000000u

static volatile uint64_t *file;
static uint64_t cell, never;
static long lock;
static unsigned char block[100000];
static int survivors, victim;

static void *map(const char *path)
{
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    void *words = mmap(NULL, WORDS * sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(words != MAP_FAILED);
    close(fd);
    return words;
}

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Says that this PE is at it, or that it has seen the end of it; for the one who disturbs. */
static void tell(int what)
{
    __atomic_fetch_add(&file[what], 1, __ATOMIC_SEQ_CST);
}

/* Returns when each of those who are left has come here for the nth time. */
static void all_have(unsigned nth)
{
    tell(SEEN);
    while (file[SEEN] < nth * (uint64_t)survivors)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- What is under way: each runs until a call fails, and gives what that says ---- */

static gshmem_status_t in_get(void)
{
    static unsigned char back[sizeof block];
    gshmem_status_t status;

    while (!(status = gshmem_getmem(back, block, sizeof back, victim)))
        ;
    return status;
}

static gshmem_status_t in_quiet(void)
{
    static unsigned char data[sizeof block];
    gshmem_status_t status;

    do
        status = gshmem_putmem_nbi(block, data, sizeof data, victim);
    while (!status && !(status = gshmem_quiet()));
    return status;
}

static gshmem_status_t in_atomic(void)
{
    gshmem_status_t status;
    uint64_t old;

    do
        status = gshmem_uint64_atomic_fetch_add_nbi(&old, &cell, 1, victim);
    while (!status && !(status = gshmem_quiet()));
    return status;
}

static gshmem_status_t in_put_signal(void)
{
    gshmem_status_t status;
    uint64_t word = 1;

    do
        status = gshmem_putmem_signal(block, &word, 8, &cell, 1, GSHMEM_SIGNAL_ADD, victim);
    while (!status && !(status = gshmem_quiet()));
    return status;
}

static gshmem_status_t in_barrier(void)
{
    return gshmem_barrier_all();
}

static gshmem_status_t in_wait(void)
{
    return gshmem_uint64_wait_until(&never, GSHMEM_CMP_EQ, 1);
}

static gshmem_status_t in_lock(void)
{
    return gshmem_set_lock(&lock); /* the victim has it */
}

static const struct {
    const char *name;
    gshmem_status_t (*run)(void);
} calls[] = {
    {"get", in_get},         {"quiet", in_quiet}, {"fetch", in_atomic}, {"put_signal", in_put_signal},
    {"barrier", in_barrier}, {"wait", in_wait},   {"lock", in_lock},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- The test ----  */

static void check_loss(const char *call, gshmem_status_t status)
{
    uint64_t ended = now(), timeout = strtoull(getenv("GSHMEM_PEER_TIMEOUT"), NULL, 10) * 1000000000u;
    const char *line = "";

    CHECK_EQ(gshmem_last_error(&line), status);
    if (status != GSHMEM_ERR_PEER_DEAD)
        CHECK_FAIL("%s: %s: %s", call, gshmem_status_name(status), line);
    CHECK(file[WHEN] && ended > file[WHEN]); /* not before it was lost */
    if (ended - file[WHEN] > timeout + SLACK_NS)
        CHECK_FAIL("%s: it ended %.1f s after the loss", call, (double)(ended - file[WHEN]) / 1e9);
    printf("PE %d: %s ended after %.1f s: %s\n", me, call, (double)(ended - file[WHEN]) / 1e9, line);
    fflush(stdout);
}

/* What needs nobody who is lost: with a PE of the other host that is left, and with all who are. */
static void go_on(gshmem_team_t left)
{
    static long one = 1, sum;
    int other = (me + survivors / 2) % survivors;
    uint64_t word = (uint64_t)me + 1000, back = 0;

    for (int i = 0; i < 10; i++) {
        CHECK_OK(gshmem_putmem(&block[8 * (size_t)me], &word, 8, other));
        CHECK_OK(gshmem_getmem(&back, &block[8 * (size_t)me], 8, other));
        CHECK_EQ(back, word);
        CHECK_OK(gshmem_uint64_atomic_add(&cell, 1, other));
        CHECK_OK(gshmem_quiet());
        CHECK_OK(gshmem_long_sum_reduce(left, &sum, &one, 1));
        CHECK_EQ(sum, survivors);
        CHECK_OK(gshmem_team_sync(left));
    }
    all_have(2); /* a PE whose finalize fails, as below, is lost to those who are still in that sync */
    /* and what does need them fails again, at the latest when it is waited for */
    gshmem_status_t status = gshmem_putmem(&cell, &word, 8, victim);
    status = status ? status : gshmem_quiet();
    CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    CHECK_FAILS(gshmem_putmem(&cell, &word, 8, victim), GSHMEM_ERR_PEER_DEAD, "PE");
    CHECK_FAILS(gshmem_getmem(&back, &cell, 8, victim), GSHMEM_ERR_PEER_DEAD, "PE");
    CHECK(gshmem_barrier_all() != GSHMEM_OK);
}

int main(int argc, char **argv)
{
    gshmem_team_t left = GSHMEM_TEAM_INVALID;

    file = map(argc == 2 ? argv[1] : "");
    begin();
    survivors = n / 3 * 2;
    victim = survivors + me % (n - survivors);
    if (me == survivors)
        CHECK_OK(gshmem_set_lock(&lock));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, survivors, NULL, 0, &left));
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_uint64_atomic_add(&cell, 1, pe));
    barrier();
    tell(READY);
    if (me >= survivors) {
        victim = me % survivors;
        in_get(); /* whatever it says: nobody hears it */
        _exit(0);
    }
    const char *call = calls[me % CALLS].name;
    check_loss(call, calls[me % CALLS].run());
    all_have(1);
    gshmem_quiet(); /* a call that learnt of the loss from others may have left a request behind */
    go_on(left);
    while (gshmem_finalize() != GSHMEM_OK && gshmem_initialized())
        ;
    tell(THROUGH);
    return 0;
}
