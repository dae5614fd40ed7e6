/* Commands of kernels for the proxy, with all that kernels see in (simulated) GPU memory: this program
 * plays the kernel, and reads and writes what is the GPU's by the simulation's copies. */
#include <dlfcn.h>
#include <sched.h>

#include "gshmem.h"
#include "gshmem/device/command.h"
#include "gshmem/device/state.h"
#include "../check.h"
#include "device/cuda/driver.h"

static struct cuda_driver driver;
static cuda_context context;
static cuda_stream stream;
static cuda_gpu gpu_number;
static struct gshmem_device_state state;

static int keep_state(const struct gshmem_device_state *given)
{
    memcpy(&state, given, sizeof state);
    return 0;
}

static struct gshmem_device_module module = {
    .size = sizeof module,
    .version = GSHMEM_DEVICE_STATE_VERSION,
    .device = "cuda",
    .fill = keep_state,
};

static void copy(void *to, const void *from, size_t bytes)
{
    CHECK_EQ(driver.context_push(context), CUDA_OK);
    CHECK_EQ(driver.copy_async((uintptr_t)to, (uintptr_t)from, bytes, stream), CUDA_OK);
    CHECK_EQ(driver.stream_wait(stream), CUDA_OK);
    CHECK_EQ(driver.context_pop(&context), CUDA_OK);
}

static void open_gpu(void)
{
    char why[200];

    CHECK(cuda_driver_open(&driver, why, sizeof why));
    CHECK_EQ(driver.context_gpu(&gpu_number), CUDA_OK); /* gshmem_init has made it current */
    CHECK_EQ(driver.primary_retain(&context, gpu_number), CUDA_OK);
    CHECK_EQ(driver.stream_create(&stream, CUDA_STREAM_NON_BLOCKING), CUDA_OK);
}

static void close_gpu(void)
{
    CHECK_EQ(driver.context_push(context), CUDA_OK);
    CHECK_EQ(driver.stream_destroy(stream), CUDA_OK);
    CHECK_EQ(driver.context_pop(&context), CUDA_OK);
    CHECK_EQ(driver.primary_release(gpu_number), CUDA_OK);
}

/* Takes a place and writes the commands; waits until they are done; whether any failed. */
static int perform(const struct gshmem_device_channel *at, const struct gshmem_command *command, int n)
{
    struct gshmem_device_channel c;
    uint64_t first, end, done;

    copy(&c, at, sizeof c);
    copy(&first, c.ring.ticket, sizeof first);
    end = first + (uint64_t)n;
    copy(c.ring.ticket, &end, sizeof end);
    for (int i = 0; i < n; i++)
        gshmem_channel_write(&c.ring, first + (uint64_t)i, gshmem_command_encode(&command[i]), 1);
    while (((done = gshmem_load_acquire(c.done)) & ~GSHMEM_DONE_FAILED) < end)
        sched_yield();
    return (done & GSHMEM_DONE_FAILED) != 0;
}

/* What kernels find: peers as they are mapped for them, the same PEs by the same numbers. */
static void check_view(const struct gshmem_device_ctx *c, gshmem_team_t team, const char *heap)
{
    int n = gshmem_team_n_pes(team);
    uintptr_t peer[8];
    int32_t world[8];

    CHECK_EQ(c->n_pes, n);
    CHECK_EQ(c->my_pe, gshmem_team_my_pe(team));
    copy(peer, c->heap.peer, (size_t)n * sizeof *peer);
    copy(world, c->world, (size_t)n * sizeof *world);
    for (int pe = 0; pe < n; pe++) {
        CHECK_EQ(world[pe], gshmem_team_translate_pe(team, pe, GSHMEM_TEAM_WORLD));
        void *there = gshmem_ptr(heap, world[pe]);
        CHECK_EQ(peer[pe] ? peer[pe] + ((uintptr_t)heap - c->heap.base) : 0,
                 getenv("GSHMEM_MAPPED") ? 0 : (uintptr_t)there);
    }
}

static void check_teams(const char *heap)
{
    const struct gshmem_device_team *view;
    struct gshmem_device_job job;
    struct gshmem_device_team seen;
    struct gshmem_device_sync sync;
    gshmem_team_t team;

    check_view(&state.ctx, GSHMEM_TEAM_WORLD, heap);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, gshmem_n_pes() - 1, -1, gshmem_n_pes(), NULL,
                                       0, &team));
    copy(&job, state.ctx.job, sizeof job);
    copy(&view, &job.team[team], sizeof view);
    CHECK(view);
    copy(&seen, view, sizeof seen);
    check_view(&seen.ctx, team, heap);
    copy(&sync, seen.sync, sizeof sync);
    CHECK_EQ(sync.word[0][0], 0);
    CHECK_EQ(sync.word[1][GSHMEM_DEVICE_SYNC_LINKS - 1], 0);
    CHECK_OK(gshmem_team_destroy(team));
    copy(&view, &job.team[team], sizeof view);
    CHECK(!view);
}

static void commands(long *gpu, long *host, int me, int left, int right)
{
    long mine[4] = {me, me + 1, me + 2, me + 3}, got[4];
    const struct gshmem_command put[] = {
        {.kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right, .address = (uintptr_t)(gpu + 8),
         .local = (uintptr_t)gpu, .size = sizeof mine, .more = 1},
        {.kind = GSHMEM_COMMAND_SIGNAL, .address = (uintptr_t)host, .local = 5, .amo = GSHMEM_SIGNAL_ADD},
        {.kind = GSHMEM_COMMAND_VALUE, .pe = (uint32_t)right, .type = 8,
         .address = (uintptr_t)(gpu + 12), .local = 77},
        {.kind = GSHMEM_COMMAND_SIGNAL, .pe = (uint32_t)right, .address = (uintptr_t)(gpu + 13),
         .local = 6, .amo = GSHMEM_SIGNAL_SET},
        {.kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right, .address = (uintptr_t)(host + 1),
         .local = (uintptr_t)(gpu + 2), .size = sizeof *gpu},
    };

    CHECK_OK(gshmem_putmem(gpu, mine, sizeof mine, me));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(perform(state.ctx.channel, put, 5), 0);
    CHECK_OK(gshmem_long_wait_until(host, GSHMEM_CMP_EQ, 5));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(got, gpu + 8, sizeof got, me));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(got[i], left + i);
    CHECK_EQ(gshmem_long_g(gpu + 12, me), 77);
    CHECK_EQ(gshmem_long_g(gpu + 13, me), 6);
    CHECK_EQ(host[1], left + 2);

    const struct gshmem_command get = {
        .kind = GSHMEM_COMMAND_GET, .pe = (uint32_t)left, .address = (uintptr_t)(gpu + 1),
        .local = (uintptr_t)(gpu + 20), .size = 2 * sizeof *gpu};
    CHECK_EQ(perform(state.ctx.channel, &get, 1), 0);
    CHECK_EQ(gshmem_long_g(gpu + 20, me), left + 1);
    CHECK_EQ(gshmem_long_g(gpu + 21, me), left + 2);
}

/* Signals that are added, atomics, and where their old values go. */
static void updates(long *gpu, int me, int right)
{
    const struct gshmem_command add[] = {
        {.kind = GSHMEM_COMMAND_SIGNAL, .pe = (uint32_t)right, .address = (uintptr_t)(gpu + 16),
         .local = 40, .amo = GSHMEM_SIGNAL_ADD},
        {.kind = GSHMEM_COMMAND_ATOMIC, .pe = (uint32_t)right, .address = (uintptr_t)(gpu + 16),
         .local = 2, .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_INT64},
        {.kind = GSHMEM_COMMAND_ATOMIC, .pe = (uint32_t)right, .address = (uintptr_t)(gpu + 16),
         .local = 100, .amo = GSHMEM_AMO_SWAP, .type = GSHMEM_TYPE_INT64, .more = 1},
        {.kind = GSHMEM_COMMAND_RESULT, .local = (uintptr_t)(gpu + 17)},
    };

    CHECK_EQ(perform(state.ctx.channel, add, 4), 0);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(gpu + 16, me), 100);
    CHECK_EQ(gshmem_long_g(gpu + 17, me), 42);
}

/* What is no memory at all: the host's quiet tells. */
static void refusals(long *gpu, int right)
{
    const struct gshmem_command wrong = {.kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right,
                                         .address = (uintptr_t)gpu, .local = 64, .size = 8};

    CHECK_EQ(perform(state.ctx.channel, &wrong, 1), 1);
    CHECK_EQ(gshmem_quiet(), GSHMEM_ERR_ARGUMENT);
}

/* More than a channel of transports takes at once, large and small, and a signal behind each: none is seen
 * before its data. */
static void many(long *gpu, long *host, int me, int left, int right)
{
    enum { LARGE = 40000, ROUNDS = 30 };
    long *to = gshmem_malloc(LARGE * sizeof *to), *from = gshmem_malloc(LARGE * sizeof *from);
    long *mine = malloc(LARGE * sizeof *mine);

    CHECK(to && from && mine);
    host[2] = 0;
    CHECK_OK(gshmem_barrier_all());
    for (long round = 1; round <= ROUNDS; round++) {
        size_t n = round % 3 ? LARGE - (size_t)round : (size_t)round;
        for (size_t i = 0; i < n; i++)
            mine[i] = me * 1000 + round + (long)i;
        CHECK_OK(gshmem_putmem(from, mine, n * sizeof *mine, me));
        const struct gshmem_command put[] = {
            {.kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right, .address = (uintptr_t)to,
             .local = (uintptr_t)from, .size = n * sizeof *to},
            {.kind = GSHMEM_COMMAND_VALUE, .pe = (uint32_t)right, .type = 8, .address = (uintptr_t)to,
             .local = (uint64_t)-round},
            {.kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right, .address = (uintptr_t)(to + 1),
             .local = (uintptr_t)(from + 1), .size = (n - 1) * sizeof *to, .more = 1},
            {.kind = GSHMEM_COMMAND_SIGNAL, .address = (uintptr_t)(host + 2), .local = 1,
             .amo = GSHMEM_SIGNAL_ADD},
            {.kind = GSHMEM_COMMAND_VALUE, .pe = (uint32_t)right, .type = 8,
             .address = (uintptr_t)(gpu + 18), .local = (uint64_t)round},
        };
        CHECK_EQ(perform(state.ctx.channel, put, 5), 0);
        CHECK_OK(gshmem_long_wait_until(host + 2, GSHMEM_CMP_EQ, round));
        CHECK_OK(gshmem_getmem(mine, to, n * sizeof *mine, me));
        CHECK_EQ(mine[0], -round);
        for (size_t i = 1; i < n; i++)
            CHECK_EQ(mine[i], left * 1000 + round + (long)i);
        CHECK_OK(gshmem_barrier_all());
        CHECK_EQ(gshmem_long_g(gpu + 18, me), round);
        CHECK_OK(gshmem_barrier_all());
    }
    free(mine);
}

/* An update comes after copies that were asked for before it, also where another GPU makes it. */
static void ordered(long *flag, int me, int left, int right)
{
    enum { LARGE = 100000, ROUNDS = 4 };
    long *to = gshmem_calloc(LARGE, sizeof *to), *from = gshmem_calloc(LARGE, sizeof *from);

    CHECK(to && from);
    for (long round = 1; round <= ROUNDS; round++) {
        CHECK_OK(gshmem_long_p(from + LARGE - 1, 100 * round + me, me));
        const struct gshmem_command put[] = {
            {.kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right, .address = (uintptr_t)to,
             .local = (uintptr_t)from, .size = LARGE * sizeof *to, .more = 1},
            {.kind = GSHMEM_COMMAND_SIGNAL, .address = (uintptr_t)flag, .local = 1,
             .amo = GSHMEM_SIGNAL_ADD},
        };
        CHECK_EQ(perform(state.ctx.channel, put, 2), 0);
        CHECK_OK(gshmem_long_wait_until(flag, GSHMEM_CMP_EQ, round));
        CHECK_EQ(gshmem_long_g(to + LARGE - 1, me), 100 * round + left);
        CHECK_OK(gshmem_barrier_all());
    }
}

/* What lies in heaps need not be asked about of the driver, command for command. */
static void calls_of_driver(long *gpu, int right)
{
    enum { COMMANDS = 50 };
    long (*count)(const char *call);
    struct gshmem_command put[COMMANDS];
    void *found = dlsym(driver.library, "sim_calls");

    CHECK(found);
    memcpy(&count, &found, sizeof found);
    for (int i = 0; i < COMMANDS; i++)
        put[i] = (struct gshmem_command){
            .kind = GSHMEM_COMMAND_PUT, .pe = (uint32_t)right, .address = (uintptr_t)gpu,
            .local = (uintptr_t)(gpu + 4), .size = 8};
    long asked = count("cuPointerGetAttribute");
    CHECK_EQ(perform(state.ctx.channel, put, COMMANDS), 0);
    CHECK_EQ(count("cuPointerGetAttribute"), asked);
    CHECK_OK(gshmem_barrier_all()); /* the other end's are over, too */
    asked = count("cuMemcpyAsync");
    CHECK_EQ(perform(state.ctx.channel, put, COMMANDS), 0);
    CHECK(count("cuMemcpyAsync") - asked <= 2 * COMMANDS + 3); /* both ends, and three of perform's own */
}

/* What kernels have issued is counted in the GPU's memory: where that cannot be read, nothing is known to be
 * complete. */
static void uncounted(gshmem_ctx_t ctx, long *lock)
{
    enum { ILLEGAL_ADDRESS = 700 };
    void (*sim_fail)(const char *call, long nth, int result);

    *(void **)&sim_fail = dlsym(driver.library, "sim_fail");
    CHECK(sim_fail);
    sim_fail("cuMemcpyAsync", 1, ILLEGAL_ADDRESS);
    CHECK_EQ(gshmem_ctx_quiet(ctx), GSHMEM_ERR_DEVICE);
    CHECK_OK(gshmem_ctx_quiet(ctx));
    sim_fail("cuMemcpyAsync", 1, ILLEGAL_ADDRESS);
    CHECK_EQ(gshmem_ctx_fence(ctx), GSHMEM_ERR_DEVICE);
    CHECK_OK(gshmem_ctx_fence(ctx));
    /* nor whether a lock is free */
    sim_fail("cuMemcpyAsync", 1, ILLEGAL_ADDRESS);
    CHECK_EQ(gshmem_test_lock(lock), -1);
    sim_fail("cuMemcpyAsync", 1, ILLEGAL_ADDRESS);
    CHECK_EQ(gshmem_set_lock(lock), GSHMEM_ERR_DEVICE);
    CHECK_OK(gshmem_set_lock(lock));
    CHECK_EQ(gshmem_test_lock(lock), 1);
    sim_fail("cuMemcpyAsync", 1, ILLEGAL_ADDRESS);
    CHECK_EQ(gshmem_clear_lock(lock), GSHMEM_ERR_DEVICE);
    CHECK_OK(gshmem_clear_lock(lock));
}

int main(void)
{
    gshmem_device_register(&module);
    CHECK_OK(gshmem_init());
    int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    long *gpu = gshmem_calloc(32, sizeof *gpu);
    long *host = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST);
    gshmem_ctx_t ctx;

    CHECK(gpu && host && state.ctx.n_pes == n);
    host[0] = host[1] = 0;
    open_gpu();
    check_teams((char *)gpu);
    commands(gpu, host, me, left, right);
    updates(gpu, me, right);
    many(gpu, host, me, left, right);
    ordered(gpu + 19, me, left, right);
    calls_of_driver(gpu, right);
    refusals(gpu, right);
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    CHECK(ctx->device);
    CHECK_OK(gshmem_ctx_quiet(ctx));
    for (int pe = 0; pe < n; pe++) { /* one at a time: no proxy copies, nor does another PE want the lock */
        CHECK_OK(gshmem_barrier_all());
        if (pe == me)
            uncounted(ctx, gpu + 28);
        CHECK_OK(gshmem_barrier_all());
    }
    CHECK_OK(gshmem_ctx_destroy(ctx));
    close_gpu();
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(state.ctx.n_pes, 0);
    return 0;
}
