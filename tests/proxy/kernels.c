/* What kernels see of the job: teams and contexts as they come and go, and what becomes of
 * mistakes. */
#include <pthread.h>
#include <sys/mman.h>

#include "kernel.h"

static const struct gshmem_device_team *view_of(gshmem_team_t team)
{
    return __atomic_load_n(&state.ctx.job->team[team], __ATOMIC_ACQUIRE);
}

/* The same PEs as the host knows, by the same numbers, reached as GSHMEM_MAPPED says. */
static void check_view(const struct gshmem_device_ctx *c, gshmem_team_t team)
{
    const char *mapped = getenv("GSHMEM_MAPPED");

    CHECK_EQ(c->n_pes, gshmem_team_n_pes(team));
    CHECK_EQ(c->my_pe, gshmem_team_my_pe(team));
    CHECK_EQ(c->team, team);
    CHECK(c->job == state.ctx.job);
    CHECK(c->channels > 0 && (c->channels & (c->channels - 1)) == 0);
    for (int pe = 0; pe < c->n_pes; pe++) {
        CHECK_EQ(c->world[pe], gshmem_team_translate_pe(team, pe, GSHMEM_TEAM_WORLD));
        void *there = gshmem_ptr((void *)c->heap.base, c->world[pe]);
        bool reached = there && !(mapped && mapped[0] == '0');
        CHECK_EQ(c->heap.peer[pe], reached ? (uintptr_t)there : 0);
        CHECK_EQ(c->system.peer[pe] != 0, reached);
    }
}

static void test_teams(void)
{
    gshmem_team_t row, team;

    check_view(&view_of(GSHMEM_TEAM_WORLD)->ctx, GSHMEM_TEAM_WORLD);
    check_view(&view_of(GSHMEM_TEAM_HOST)->ctx, GSHMEM_TEAM_HOST);
    CHECK_EQ(state.ctx.job->teams > GSHMEM_TEAM_HOST, 1);
    for (int again = 0; again < 3; again++) {
        CHECK_OK(gshmem_team_split_2d(GSHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &team));
        check_view(&view_of(row)->ctx, row);
        const struct gshmem_device_team *view = view_of(team);
        CHECK(view);
        check_view(&view->ctx, team);
        CHECK_EQ(gshmem_load_relaxed(view->failure), 0);
        CHECK_EQ(view->rounds->last, 0);
        /* an earlier team's words are gone */
        for (int i = 0; i < GSHMEM_DEVICE_SYNC_LINKS; i++) {
            CHECK_EQ(view->sync->word[0][i], 0);
            CHECK_EQ(view->sync->word[1][i], 0);
        }
        CHECK_OK(gshmem_team_sync(team));
        view->sync->word[0][3] = 77;
        view->sync->word[1][0] = 78;
        CHECK_OK(gshmem_team_destroy(team));
        CHECK(!view_of(team));
        CHECK_OK(gshmem_team_destroy(row));
    }
}

/* Commands on a context's channel are its own: other contexts' quiets do not see them. */
static void test_contexts(uint64_t *words)
{
    int to = (gshmem_my_pe() + 1) % gshmem_n_pes();
    gshmem_ctx_t ctx;

    for (int again = 0; again < 3; again++) {
        CHECK_OK(gshmem_ctx_create(0, &ctx));
        const struct gshmem_device_ctx *c = ctx->device;
        check_view(c, GSHMEM_TEAM_WORLD);
        CHECK_EQ(c->channels, 1);
        CHECK(c->channel != state.ctx.channel);
        struct gshmem_command command = {
            .kind = GSHMEM_COMMAND_VALUE,
            .type = 8,
            .pe = (uint32_t)c->world[to],
            .address = (uintptr_t)&words[1],
            .local = 1000 + (uint64_t)again,
        };
        issue(c->channel, &command, 1);
        CHECK_OK(gshmem_ctx_quiet(ctx)); /* the host's covers what kernels have issued */
        CHECK_EQ(gshmem_load_acquire(c->channel->done), 1);
        CHECK_EQ(gshmem_uint64_g(&words[1], to), 1000 + (uint64_t)again);
        issue(c->channel, &command, 1);
        CHECK_OK(gshmem_ctx_destroy(ctx)); /* and so does its end */
    }
}

/* Failures that nobody waits for come with the next quiet of the host, once. */
static void test_quiet_tells(void)
{
    struct gshmem_command command = {
        .kind = GSHMEM_COMMAND_PUT, .address = 4096, .local = (uintptr_t)&command, .size = 64};

    issue(&state.ctx.channel[0], &command, 1);
    CHECK_EQ(gshmem_quiet(), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_OK(gshmem_quiet());
}

static struct {
    pthread_mutex_t lock;
    int times;
    gshmem_status_t status;
    char text[200];
} handled = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void handler(gshmem_status_t status, const char *text, void *context)
{
    CHECK(context == &handled);
    CHECK_OK(gshmem_quiet()); /* the policy may use the library */
    pthread_mutex_lock(&handled.lock);
    handled.times++;
    handled.status = status;
    snprintf(handled.text, sizeof handled.text, "%s", text);
    pthread_mutex_unlock(&handled.lock);
}

/* Where the caller gets no status, the error policy has it before the answer comes. */
static void test_raises(void)
{
    struct gshmem_command command = {.kind = GSHMEM_COMMAND_FETCH,
                                     .type = 8,
                                     .address = 4096,
                                     .responds = 1,
                                     .raises = 1,
                                     .tag = 1};

    gshmem_set_error_handler(handler, &handled);
    issue(&state.ctx.channel[0], &command, 1);
    CHECK_EQ(wait_answer(state.ctx.job, 0, 1, NULL), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(handled.times, 1);
    CHECK_EQ(handled.status, GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_HAS(handled.text, "g in a kernel of 8 B at 0x1000");
    command = (struct gshmem_command){
        .kind = GSHMEM_COMMAND_RAISE, .type = GSHMEM_ERR_TIMEOUT, .responds = 1, .tag = 2};
    issue(&state.ctx.channel[0], &command, 1);
    wait_answer(state.ctx.job, 0, 2, NULL);
    CHECK_EQ(handled.times, 2);
    CHECK_EQ(handled.status, GSHMEM_ERR_TIMEOUT);
    gshmem_set_error_handler(NULL, NULL);
    CHECK_OK(gshmem_quiet());
}

/* From nowhere, and to nowhere: errors of these operations, and the process goes on. */
static void test_local_addresses(uint64_t *words)
{
    void *gone = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t bad[] = {0, 8, (uintptr_t)gone, UINT64_C(0xdead) << 48, UINT64_MAX - 7};

    CHECK(gone != MAP_FAILED && munmap(gone, 1 << 20) == 0);

    for (uint32_t i = 0; i < 10; i++) {
        struct gshmem_command command = {
            .kind = i % 2 ? GSHMEM_COMMAND_PUT : GSHMEM_COMMAND_GET,
            .address = (uintptr_t)words,
            .local = bad[i / 2],
            .size = i < 5 ? 8 : 16384,
            .responds = 1,
            .response = 5,
            .tag = i + 1,
        };
        issue(&state.ctx.channel[0], &command, 1);
        CHECK_EQ(wait_answer(state.ctx.job, 5, i + 1, NULL), GSHMEM_ERR_ARGUMENT);
    }
    CHECK_OK(gshmem_quiet());
}

static struct gshmem_device_state second_state;

static int keep_second(const struct gshmem_device_state *given)
{
    second_state = *given;
    return 0;
}

/* A module that is loaded while the job runs is given the state at once. */
static void test_late_module(void)
{
    static struct gshmem_device_module second = {.size = sizeof second,
                                                 .version = GSHMEM_DEVICE_STATE_VERSION,
                                                 .device = "host",
                                                 .fill = keep_second};
    static struct gshmem_device_module old = {.size = sizeof old, .version = 0, .device = "host"};

    gshmem_device_register(&second);
    CHECK_EQ(second_state.ctx.n_pes, gshmem_n_pes());
    CHECK(second_state.ctx.job == state.ctx.job);
    gshmem_device_unregister(&second);
    gshmem_device_register(&old); /* refused: its fill is NULL */
    gshmem_device_unregister(&old);
}

int main(void)
{
    bool late = getenv("LATE") != NULL;

    if (!late)
        gshmem_device_register(&module);
    CHECK_OK(gshmem_init());
    if (late) {
        gshmem_ctx_t before;
        CHECK_OK(gshmem_ctx_create(0, &before));
        CHECK(!before->device);
        gshmem_device_register(&module);
        CHECK(before->device);
        CHECK_OK(gshmem_ctx_destroy(before));
    }
    check_view(&state.ctx, GSHMEM_TEAM_WORLD);
    CHECK(GSHMEM_CTX_DEFAULT != gshmem_ctx_default && gshmem_ctx_default->device);
    uint64_t *words = gshmem_calloc(16, sizeof *words);
    CHECK_OK(gshmem_barrier_all());
    test_teams();
    test_contexts(words);
    CHECK_OK(gshmem_barrier_all());
    test_quiet_tells();
    test_raises();
    test_local_addresses(words);
    test_late_module();
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(state.ctx.n_pes, 0);
    return 0;
}
