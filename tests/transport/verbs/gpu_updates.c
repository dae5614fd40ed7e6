/* Updates over verbs of GPU memory while a kernel fills that GPU: two PEs in one process, as gpu_pes.h has them.
 * Nobody who drives the network waits for the kernel, nor is taken for dead meanwhile; the updates are made once,
 * when there is room, and before what is behind a fence.
 *
 *     cuda-verbs-updates MODULE */
#include "gpu_pes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/settings.h"

enum {
    WORD = 64,
    FLAG = 72, /* in the heap in GPU memory; and from here on plain words: */
    PLAIN = 4096,
};

#define SECOND UINT64_C(1000000000)

static _Atomic uint64_t now; /* ns, where the test says what time it is; 0: it does not */

/* In place of libc's, for all of this process. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    const uint64_t ns = now;

    if (clock != CLOCK_MONOTONIC || !ns)
        return (int)syscall(SYS_clock_gettime, clock, t);
    *t = (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    return 0;
}

static struct device_ops real; /* of the device; here they are counted: */
static int started, ended;

static gshmem_status_t start_update(struct device *d, const struct device_update *u, uint64_t *ticket)
{
    const gshmem_status_t status = real.update_start(d, u, ticket);

    started += *ticket != 0;
    return status;
}

static bool end_update(struct device *d, uint64_t ticket, uint64_t *result, gshmem_status_t *status)
{
    const bool over = real.update_done(d, ticket, result, status);

    ended += over;
    return over;
}

static void forget_update(struct device *d, uint64_t ticket)
{
    real.update_forget(d, ticket);
    ended++;
}

static void (*occupy)(int gpu, bool occupied);

static uint64_t word_of(int which, int segment, uint64_t offset)
{
    uint64_t value;

    copy(&value, at_of(which, segment, offset), 8);
    return value;
}

static struct link *link_of(int which)
{
    return ((struct verbs *)pe[which].t)->to[1 - which];
}

/* Messages of PE 0's that PE 1 has heard and not carried out. */
static uint32_t under_way(void)
{
    return link_of(1)->target.received - link_of(1)->target.served;
}

/* ---- Requests of PE 0's ---- */

static struct transport_request add(uint64_t operand, uint64_t *old, uint32_t epoch)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC, .flags = TRANSPORT_LOOSE, .epoch = epoch,
                                      .segment = GPU, .offset = WORD, .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64, .operand = operand, .old = old};
}

static struct transport_request put(void *from, int segment, uint64_t offset, uint64_t bytes, uint32_t epoch)
{
    return (struct transport_request){.kind = TRANSPORT_PUT, .flags = TRANSPORT_LOOSE, .epoch = epoch,
                                      .local = from, .segment = segment, .offset = offset, .bytes = bytes};
}

static struct transport_request with_flag(struct transport_request r, uint64_t value)
{
    r.signal_op = GSHMEM_SIGNAL_ADD;
    r.signal_segment = GPU;
    r.signal_offset = FLAG;
    r.signal_value = value;
    return r;
}

/* Until PE 1's GPU is at the first of them, and PE 1 has heard all. */
static void drive_until_under_way(void)
{
    const struct link *l = link_of(0);

    while (!under_way() || l->issuing != l->posted || link_of(1)->target.received != l->messages.sent)
        drive();
}

static uint64_t old, zero;
static uint64_t *results[] = {&old, NULL, NULL, NULL, NULL};
enum { ADDS = sizeof results / sizeof *results };

/* One that fetches, some that do not, of which all but the first travel together, and a put with a flag. */
static void post_updates(void)
{
    static char data[100];

    old = 99;
    copy(at_of(1, GPU, WORD), &zero, 8);
    copy(at_of(1, GPU, FLAG), &zero, 8);
    for (int i = 0; i < ADDS; i++)
        post(add(1 << i, results[i], 1));
    post(with_flag(put(data, GPU, PLAIN, sizeof data, 1), 1));
}

static void check_updates(void)
{
    CHECK_EQ(old, 0);
    CHECK_EQ(word_of(1, GPU, WORD), (1 << ADDS) - 1);
    CHECK_EQ(word_of(1, GPU, FLAG), 1);
}

static void begin_updates(unsigned seed, int devices, enum transport_way way)
{
    static char data[1 << 20];

    fake_begin(seed);
    fake.devices = devices;
    fake.peermem = 1;
    stages = true; /* what the device does takes a thread of its own */
    begin_both(way, way);
    for (int from = 0; from < PES; from++) { /* both know each other, and have keys */
        post_from(from, put(data, HOST, PLAIN, sizeof data, 0));
        post_from(from, put(data, GPU, PLAIN, sizeof data, 0));
    }
    post(add(0, &old, 0));
    settle();
    occupy(0, true);
    post_updates();
}

/* ---- Tests ---- */

/* PE 1 gets what PE 0 puts, though PE 0 is told later that it is done, after what it asked for before. */
static void put_and_look(unsigned round)
{
    static char here[100000], back[100000];

    fill(here, sizeof here, round);
    memset(back, 0, sizeof back);
    post(put(here, HOST, PLAIN, sizeof here, 1));
    while (memcmp(at_of(1, HOST, PLAIN), here, sizeof here) != 0)
        drive();
    post((struct transport_request){.kind = TRANSPORT_GET, .flags = TRANSPORT_LOOSE, .epoch = 1, .local = back,
                                    .segment = HOST, .offset = PLAIN, .bytes = sizeof back});
    while (memcmp(back, here, sizeof here) != 0)
        drive();
}

/* A round in which so much time passes, and both look who has been silent. */
static void spend(uint64_t ns)
{
    now += ns;
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
    drive();
}

/* For longer than a PE may be silent; what needs no update goes on meanwhile, in both directions. */
static void others_go_on(enum transport_way way)
{
    static char there[4096];
    const uint64_t last = 1 << 20;
    struct timespec begun;

    begin_updates(1, 1, way);
    drive_until_under_way();
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &begun), 0);
    now = (uint64_t)begun.tv_sec * SECOND;
    for (unsigned round = 0; round < 200; round++) {
        const int before = ok;
        spend(SECOND / 5);
        if (round < 20)
            put_and_look(round);
        post_from(1, put(there, HOST, PLAIN, sizeof there, 1));
        while (ok == before)
            drive();
    }
    CHECK(now > (begun.tv_sec + 3 * settings_number(SETTING_PEER_TIMEOUT)) * SECOND);
    const int held = posted - ok;
    post(put((void *)&last, GPU, WORD, 8, 2)); /* behind a fence */
    for (int i = 0; i < 1000; i++)
        drive();
    CHECK_EQ(posted - ok, held + 1);
    CHECK(under_way());
    CHECK_EQ(word_of(1, GPU, WORD), 0);
    occupy(0, false);
    settle();
    CHECK_EQ(old, 0);
    CHECK_EQ(word_of(1, GPU, WORD), last);
    CHECK_EQ(word_of(1, GPU, FLAG), 1);
    end();
    now = 0;
}

static bool is_stopping(int which)
{
    const struct link *l = link_of(which);

    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->state == PATH_STOPPING)
            return true;
    }
    return false;
}

/* A device's port goes down, or comes back, which both PEs hear. */
static void change_port(int of_device, bool up)
{
    fake_port(of_device, up);
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
    while (is_stopping(0) || is_stopping(1))
        drive();
}

/* The path by which they came breaks under them, and others after it: what has been begun goes on, what had only been
 * heard goes on or is asked for again, and nothing is made twice. The last way is the transport below, which
 * nothing overtakes them by. */
static void paths_break(unsigned seed, int devices, bool comes_back, enum transport_way way)
{
    const uint64_t last = 1 << 20, loose = 7;

    begin_updates(seed, devices, way);
    drive_until_under_way();
    const int begun = started;
    for (int i = 0; i < devices; i++) {
        change_port(i, false);
        CHECK(under_way());
    }
    CHECK_EQ(link_of(0)->state, LINK_BELOW);
    const int held = posted - ok;
    post(put((void *)&loose, HOST, 8, 8, 1));
    post(put((void *)&last, GPU, WORD, 8, 2)); /* behind a fence */
    for (int i = 0; i < 1000; i++)
        drive();
    CHECK(posted - ok <= held + 2);
    CHECK_EQ(word_of(1, GPU, WORD), 0);
    if (comes_back) {
        change_port(0, true);
        for (int i = 0; i < 1000; i++)
            drive();
        CHECK_EQ(word_of(1, GPU, WORD), 0);
    }
    CHECK_EQ(started, begun);
    occupy(0, false);
    settle();
    CHECK_EQ(old, 0);
    CHECK_EQ(word_of(1, GPU, WORD), last);
    CHECK_EQ(word_of(1, GPU, FLAG), 1);
    CHECK_EQ(word_of(1, HOST, 8), loose);
    CHECK_EQ(started, ended);
    end();
}

/* It breaks, and comes back, before the kernel ends or about then. */
static void path_breaks_once(unsigned seed, int rounds)
{
    begin_updates(seed, 1, TRANSPORT_BY_PEERMEM);
    for (int i = 0; i < rounds; i++)
        drive();
    fake_port(0, false);
    occupy(0, false);
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
    for (int i = 0; i < rounds; i++)
        drive();
    change_port(0, true);
    settle();
    check_updates();
    CHECK_EQ(started, ended);
    end();
}

static void *end_kernel(void *unused)
{
    usleep(50000); /* likely after the heap is given back, which must not be sooner */
    occupy(0, false);
    return unused;
}

/* The heap is given back while a kernel fills the GPU: its memory is there until the update is made, which nobody asks
 * for any more. */
static void end_before_the_kernel(void)
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, end_kernel, NULL), 0);
    CHECK_EQ(started, ended);
    end();
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* The other PE is lost while its update is under way: nobody asks for that any more. */
static void asker_is_lost(void)
{
    begin_updates(1, 1, TRANSPORT_BY_PEERMEM);
    drive_until_under_way();
    gshmem_transport.lose(pe[1].t, 0, GSHMEM_ERR_PEER_DEAD);
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(failed, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(ok, posted);
    CHECK_EQ(gshmem_transport.busy(pe[1].t), 0);
    close_both();
    end_before_the_kernel();
}

/* Both end while one is under way. */
static void job_ends(void)
{
    begin_updates(1, 1, TRANSPORT_BY_PEERMEM);
    drive_until_under_way();
    CHECK_EQ(gshmem_transport.busy(pe[1].t), 1);
    close_both();
    CHECK_EQ(failed, GSHMEM_ERR_ABORTED);
    CHECK_EQ(ok, posted);
    end_before_the_kernel();
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    open_device(argv[1]);
    real = ops;
    ops.update_start = start_update;
    ops.update_done = end_update;
    ops.update_forget = forget_update;
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "sim_occupy");
    CHECK(found);
    memcpy(&occupy, &found, sizeof found);

    others_go_on(TRANSPORT_BY_PEERMEM);
    others_go_on(TRANSPORT_BY_STAGING);
    for (unsigned seed = 1; seed <= 6; seed++) {
        for (int way = 0; way < 4; way++)
            paths_break(seed, 1 + way % 2, way / 2, seed % 2 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING);
    }
    for (int rounds = 0; rounds < 40; rounds++)
        path_breaks_once((unsigned)rounds + 1, rounds);
    asker_is_lost();
    job_ends();
    close_device();
    return 0;
}
