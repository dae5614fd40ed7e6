/* No kernel waits for ever: a PE dies, or ends the job, and the failure words say so; what was
 * under way to the dead ends with a status, and what goes to the living goes on.
 *
 * Starts its own PEs by fork and a unique id: ends death|abort|unwritten|stopped. PE 0 is the parent. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel.h"
#include "../last.h"

enum { PES = 3, STOPPED_MS = 11000 /* longer than a quiet waits for a kernel that does not write */ };

static uint64_t word; /* symmetric: a variable of the program */

static uint64_t wait_failure(const uint64_t *failure)
{
    uint64_t status;

    while (!(status = gshmem_load_relaxed(failure))) {
        gshmem_device_help();
        usleep(1000);
    }
    return status;
}

static int ask(int pe, uint32_t tag)
{
    struct gshmem_command command = {.kind = GSHMEM_COMMAND_VALUE,
                                     .type = 8,
                                     .pe = (uint32_t)pe,
                                     .address = (uintptr_t)&word,
                                     .local = tag,
                                     .responds = 1,
                                     .response = 3,
                                     .tag = tag};

    issue(&state.ctx.channel[0], &command, 1);
    return wait_answer(state.ctx.job, 3, tag, NULL);
}

static void death(void)
{
    gshmem_team_t alive;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, PES - 1, NULL, 0, &alive));
    last_waits_for_all();
    if (gshmem_my_pe() == PES - 1)
        raise(SIGKILL);
    CHECK_EQ(wait_failure(state.ctx.job->failure), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(wait_failure(state.ctx.job->team[GSHMEM_TEAM_WORLD]->failure), GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(gshmem_load_relaxed(state.ctx.job->team[alive]->failure),
             0); /* none of its members died */
    CHECK_OK(gshmem_team_sync(alive));
}

static void abort_job(void)
{
    last_waits_for_all();
    if (gshmem_my_pe() == PES - 1)
        gshmem_global_exit(3);
    CHECK_EQ(wait_failure(state.ctx.job->failure), GSHMEM_ERR_ABORTED);
    CHECK_EQ(wait_failure(state.ctx.job->team[GSHMEM_TEAM_WORLD]->failure), GSHMEM_ERR_ABORTED);
}

/* Takes two places, and writes the first slot of a command that has two. */
static void write_half(const struct gshmem_channel *c)
{
    const struct gshmem_command put = {.kind = GSHMEM_COMMAND_PUT,
                                       .more = 1,
                                       .pe = (uint32_t)gshmem_my_pe(),
                                       .address = (uintptr_t)&word,
                                       .local = (uintptr_t)&word,
                                       .size = sizeof word};

    gshmem_channel_write(c, gshmem_channel_take(c, 2), gshmem_command_encode(&put), 1);
}

/* Kernels that were ended between taking a place and writing it, or half of it. */
static void unwritten(void)
{
    gshmem_ctx_t ctx;

    CHECK_OK(gshmem_ctx_create(0, &ctx));
    gshmem_channel_take(&ctx->device->channel->ring, 1);
    CHECK_FAILS(gshmem_ctx_destroy(ctx), GSHMEM_ERR_DEVICE, "gshmem_ctx_destroy: of 1 operations");
    CHECK_EQ(ask((gshmem_my_pe() + 1) % PES, 1), GSHMEM_OK);
    write_half(&state.ctx.channel[0].ring);
    CHECK_FAILS(gshmem_finalize(), GSHMEM_ERR_DEVICE, "gshmem_finalize: of 2 operations");
    CHECK(!gshmem_initialized());
}

/* ---- A PE is stopped ---- */

static struct {
    const struct gshmem_channel *channel;
    uint64_t position;
} late;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* As a kernel's thread that had no CPU when its PE was stopped, and has none at once when it goes on. */
static void *write_late(void *unused)
{
    const struct gshmem_command put = {.kind = GSHMEM_COMMAND_PUT,
                                       .pe = (uint32_t)gshmem_my_pe(),
                                       .address = (uintptr_t)&word,
                                       .local = (uintptr_t)&word,
                                       .size = sizeof word};

    (void)unused;
    for (int64_t before = now_ms(), now; (now = now_ms()) - before < STOPPED_MS / 2; before = now)
        usleep(1000);
    usleep(300 * 1000);
    gshmem_channel_write(late.channel, late.position, gshmem_command_encode(&put), 1);
    return NULL;
}

/* The time in which a PE is stopped does not count against the kernel that was about to write. */
static void stopped(void)
{
    const pid_t me = getpid();
    gshmem_ctx_t ctx;
    pthread_t thread;

    if (gshmem_my_pe() > 0)
        return;
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    late.channel = &ctx->device->channel->ring;
    late.position = gshmem_channel_take(late.channel, 1);
    CHECK_EQ(pthread_create(&thread, NULL, write_late, NULL), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(500 * 1000); /* so that the quiet has begun to wait */
        kill(me, SIGSTOP);
        usleep(STOPPED_MS * 1000);
        kill(me, SIGCONT);
        _exit(0);
    }
    CHECK_OK(gshmem_ctx_quiet(ctx));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void be_pe(void (*run)(void), const gshmem_uniqueid_t *uid, int pe)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = PES};

    gshmem_device_register(&module);
    CHECK_OK(gshmem_init_attr(&attr));
    run();
}

int main(int argc, char **argv)
{
    const char *name = argc == 2 ? argv[1] : "";
    void (*run)(void) = strcmp(name, "death") == 0       ? death
                        : strcmp(name, "abort") == 0     ? abort_job
                        : strcmp(name, "unwritten") == 0 ? unwritten
                        : strcmp(name, "stopped") == 0   ? stopped
                                                         : NULL;
    gshmem_uniqueid_t uid;
    pid_t child[PES];

    if (!run) {
        fprintf(stderr, "usage: %s death|abort|unwritten|stopped\n", argv[0]);
        return 2;
    }
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int pe = 1; pe < PES; pe++) {
        child[pe] = fork();
        CHECK(child[pe] >= 0);
        if (child[pe] == 0) {
            be_pe(run, &uid, pe);
            _exit(0);
        }
    }
    be_pe(run, &uid, 0);
    for (int pe = 1; pe < PES; pe++) {
        int status;
        CHECK_EQ(waitpid(child[pe], &status, 0), child[pe]);
        if (pe < PES - 1)
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0); /* the job may be lost, and finalize would say so */
}
