/* Several proxies, each with channels and connections of its own: a PE that dies has died for all of
 * them, also for one that has never reached it; PEs that disagree about their number are told; what
 * the host has issued before there were kernels is complete when they start; and a thread that posts
 * or waits leaves proxies asleep that have nothing to do with it.
 *
 * Starts its own PEs by fork and a unique id, on two pretended nodes: lanes death|unequal|late|words.
 * PE 0 is the parent. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel.h"

enum { PES = 2, PROXIES = 4 };

static uint64_t word; /* symmetric: a variable of the program */
static int ready[2], done[2]; /* pipes: PE 0 has contact, or is through */
enum { LATE_BYTES = 1 << 20, LATE_PUTS = 32 };

static int ask(uint32_t channel, uint32_t tag)
{
    struct gshmem_command command = {.kind = GSHMEM_COMMAND_VALUE,
                                     .type = 8,
                                     .pe = 1,
                                     .address = (uintptr_t)&word,
                                     .local = tag,
                                     .responds = 1,
                                     .response = 3 + channel,
                                     .tag = tag};

    const struct gshmem_response *r = &state.ctx.job->response[command.response];
    uint64_t answer;

    issue(&state.ctx.channel[channel], &command, 1);
    while (((answer = gshmem_load_acquire(&r->answer)) >> 8) != tag) { /* also after the death */
        gshmem_device_help();
        sched_yield();
    }
    return (int)(answer & 255);
}

static void start(const gshmem_uniqueid_t *uid, int pe, const char *proxies)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};

    CHECK_EQ(setenv("GSHMEM_PROXIES", proxies, 1), 0);
    gshmem_device_register(&module);
    CHECK_OK(gshmem_init_attr(&attr));
    CHECK_EQ(state.ctx.channels, 4);
}

static void see_it_die(void)
{
    uint32_t tag = 1; /* of one byte, and never that of the answer before */
    int status;

    for (uint32_t channel = 0; channel < PROXIES - 1; channel++)
        CHECK_EQ(ask(channel, tag), GSHMEM_OK);
    CHECK_EQ(write(ready[1], "", 1), 1);
    for (uint32_t channel = 0; channel < PROXIES - 1; channel++) {
        while ((status = ask(channel, tag = (tag + 1) & 255)) == GSHMEM_OK)
            usleep(1000);
        CHECK_EQ(status, GSHMEM_ERR_PEER_DEAD);
    }
    CHECK_EQ(ask(PROXIES - 1, 1), GSHMEM_ERR_PEER_DEAD);
}

static void death(const gshmem_uniqueid_t *uid, int pe)
{
    char byte;

    start(uid, pe, "4");
    CHECK_OK(gshmem_barrier_all());
    if (pe == 0) {
        see_it_die();
        return;
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    raise(SIGKILL);
}

static void unequal(const gshmem_uniqueid_t *uid, int pe)
{
    char byte;

    start(uid, pe, pe == 0 ? "2" : "1");
    CHECK_OK(gshmem_barrier_all());
    if (pe == 0) {
        CHECK_EQ(ask(0, 1), GSHMEM_OK);
        CHECK_EQ(ask(1, 2), GSHMEM_ERR_MISMATCH);
        CHECK_EQ(ask(2, 3), GSHMEM_OK);
        CHECK_EQ(write(done[1], "", 1), 1);
    } else {
        CHECK_EQ(read(done[0], &byte, 1), 1);
    }
    CHECK_OK(gshmem_barrier_all());
}

/* A fence of the host begins an epoch on its own lane; it does not know that there will be others.
 */
static void late(const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};

    CHECK_EQ(setenv("GSHMEM_PROXIES", "2", 1), 0);
    CHECK_OK(gshmem_init_attr(&attr));
    char *heap = gshmem_malloc(LATE_BYTES);
    CHECK(heap);
    CHECK_OK(gshmem_barrier_all());
    if (pe == 0) {
        for (int i = 0; i < LATE_PUTS; i++)
            CHECK_OK(gshmem_putmem_nbi(heap, heap, LATE_BYTES, 1));
        CHECK_OK(gshmem_fence());
        gshmem_device_register(&module);
        CHECK_EQ(state.ctx.channels, 4);
        CHECK_EQ(gshmem_load_acquire(&state.ctx.host->done), state.ctx.host->issued);
        CHECK(state.ctx.host->issued >= LATE_PUTS);
    }
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_finalize());
}

/* Between its sleeps, of up to 20 ms, a proxy is awake for a moment. */
static void await_sleep(const uint32_t *asleep)
{
    while (!gshmem_load_relaxed_32(asleep))
        usleep(100);
}

/* How often each proxy of this process has gone to sleep, or waited for a lock, so far: the least of
 * them. */
static long least_sleeps(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long least = LONG_MAX, sleeps;
    char path[300], line[200];
    struct dirent *e;
    bool is_proxy;

    CHECK(tasks);
    while ((e = readdir(tasks))) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "re");
        is_proxy = false;
        while (f && fgets(line, sizeof line, f)) {
            is_proxy |= strcmp(line, "Name:\tgshmem-proxy\n") == 0;
            if (is_proxy && sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps) == 1 && sleeps < least)
                least = sleeps;
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    CHECK(least != LONG_MAX);
    return least;
}

/* A proxy that `step` wakes sleeps once more for each call. The other one sleeps for 20 ms at a time,
 * as it does by itself: on a machine where calls take many milliseconds this cannot tell. */
static void check_sleeps_on(const char *what, const uint32_t *asleep, void (*step)(void))
{
    enum { CALLS = 200 };
    const long before = least_sleeps();
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < CALLS; i++) {
        await_sleep(asleep);
        step();
    }
    const long sleeps = least_sleeps() - before;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    if (sleeps >= CALLS / 2 + ms / 10)
        CHECK_FAIL("%d times %s: each proxy has slept %ld times", CALLS, what, sleeps);
}

static void post_to_the_first(void)
{
    const struct gshmem_device_channel *c = &state.ctx.channel[0];
    const struct gshmem_command put = {.kind = GSHMEM_COMMAND_VALUE,
                                       .type = 8,
                                       .pe = 1,
                                       .address = (uintptr_t)&word,
                                       .local = 1};

    await_sleep(c->asleep);
    wait_done(c, issue(c, &put, 1));
}

static void words(const gshmem_uniqueid_t *uid, int pe)
{
    const struct gshmem_device_channel *c;
    char byte;

    start(uid, pe, "2");
    c = state.ctx.channel;
    CHECK(c[0].asleep != c[1].asleep);
    CHECK(c[0].asleep == c[2].asleep && c[1].asleep == c[3].asleep);
    CHECK_OK(gshmem_barrier_all());
    if (pe) {
        CHECK_EQ(read(done[0], &byte, 1), 1);
        return;
    }
    CHECK_EQ(ask(0, 1), GSHMEM_OK);
    check_sleeps_on("a wait", c[1].asleep, gshmem_device_help);
    check_sleeps_on("a post", c[1].asleep, post_to_the_first);
    await_sleep(c[1].asleep);
    CHECK_EQ(ask(1, 1), GSHMEM_OK);
    CHECK_EQ(write(done[1], "", 1), 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const gshmem_uniqueid_t *uid, int pe);
    } modes[] = {{"death", death}, {"unequal", unequal}, {"late", late}, {"words", words}};
    void (*run)(const gshmem_uniqueid_t *uid, int pe) = NULL;
    gshmem_uniqueid_t uid;
    int status;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (argc == 2 && strcmp(argv[1], modes[i].name) == 0)
            run = modes[i].run;
    }
    if (!run) {
        fprintf(stderr, "usage: %s death|unequal|late|words\n", argv[0]);
        return 2;
    }
    CHECK_EQ(setenv("GSHMEM_PRETENDED_NODES", "2", 1), 0);
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(done), 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(done[1]); /* so that a read ends if PE 0 has failed */
        run(&uid, 1);
        _exit(0);
    }
    run(&uid, 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(run == death ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    _exit(0); /* the job may be lost, and finalize would say so */
}
