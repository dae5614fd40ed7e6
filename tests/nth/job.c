/* A small job that uses most of what a PE does on the CPU. Heap memory may be a GPU's: the program
 * accesses it by calls alone. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "job.h"

enum { FEW = 64, BULK = 48 << 10, MANY = 600 };

static long of_program[4]; /* a symmetric variable */

static bool on_gpu(void)
{
    const char *device = getenv("GSHMEM_DEVICE");

    return device && strcmp(device, "cuda") == 0;
}

/* What PE pe has at i, and writes. */
static long value_of(int pe, int i)
{
    return 1000003L * (pe + 1) + i;
}

static bool put_values(long *to, int from, int pe, int n)
{
    long *values = malloc((size_t)n * sizeof *values);

    for (int i = 0; i < n; i++)
        values[i] = value_of(from, i);
    const gshmem_status_t status = gshmem_long_put(to, values, (size_t)n, pe);
    free(values);
    TRY(status);
    return true;
}

static bool find_values(const long *at, int from, int pe, int n)
{
    long *values = calloc((size_t)n, sizeof *values);
    const gshmem_status_t status = gshmem_long_get(values, at, (size_t)n, pe);

    for (int i = 0; i < n && !status; i++)
        RIGHT(values[i] == value_of(from, i));
    free(values);
    TRY(status);
    return true;
}

/* ---- Data ---- */

static bool move_data(int me, int n)
{
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    long *words, strided[8], got;

    if (!on_gpu()) { /* there variables are not symmetric */
        TRY(gshmem_long_p(&of_program[1], value_of(me, 1), next));
        TRY(gshmem_barrier_all());
        RIGHT(of_program[1] == value_of(before, 1));
    }
    TRY_MEMORY(words, gshmem_calloc(BULK, sizeof *words));
    if (!put_values(words, me, next, FEW))
        return false;
    TRY(gshmem_barrier_all());
    if (!find_values(words, before, me, FEW) || !find_values(words, me, next, FEW) ||
        !put_values(words, me, next, BULK))
        return false;
    TRY(gshmem_barrier_all());
    if (!find_values(words, before, me, BULK))
        return false;
    TRY(gshmem_long_iget(strided, words, 1, 3, 8, next));
    for (int i = 0; i < 8; i++)
        RIGHT(strided[i] == value_of(me, 3 * i));
    TRY(gshmem_barrier_all());
    TRY(gshmem_long_iput(words, strided, 2, 1, 8, next));
    TRY(gshmem_long_put_nbi(words + 100, strided, 8, next));
    TRY(gshmem_fence());
    TRY(gshmem_long_p(words + 120, 17, next));
    TRY(gshmem_quiet());
    TRY(gshmem_long_get(&got, words + 120, 1, next));
    RIGHT(got == 17);
    TRY(gshmem_pe_quiet(&next, 1));
    TRY(gshmem_barrier_all());
    if (gshmem_ptr(words, next) && gshmem_ptr(words, me) == (void *)words)
        got = 0;
    TRY(gshmem_free(words));
    return true;
}

/* A child has variables of its own, or those of its parent if there was no memory for that. */
static bool have_child(void)
{
    int status = 0;
    const long expected = of_program[1];
    const pid_t child = fork();

    if (child == 0)
        _exit(of_program[1] == expected ? 0 : JOB_WRONG);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    RIGHT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

/* ---- Memory ---- */

static bool grow(int me, int n)
{
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    char *at[6], *large;

    for (int i = 0; i < 6; i++)
        TRY_MEMORY(at[i], i % 2 ? gshmem_malloc(1 + (size_t)i * 5000) : gshmem_align(4096, 100000));
    TRY_MEMORY(large, gshmem_malloc(24 << 20));
    if (!put_values((long *)(large + (20 << 20)), me, next, FEW))
        return false;
    TRY(gshmem_barrier_all());
    if (!find_values((long *)(large + (20 << 20)), before, me, FEW))
        return false;
    TRY_MEMORY(large, gshmem_realloc(large, 40 << 20));
    if (!find_values((long *)(large + (20 << 20)), before, me, FEW))
        return false;
    TRY(gshmem_free(large));
    for (int i = 0; i < 6; i++)
        TRY(gshmem_free(at[i]));
    TRY_MEMORY(large, gshmem_calloc(1, 8 << 20)); /* of what was given back */
    TRY(gshmem_free(large));
    return true;
}

/* Memory of the program's own: registered, and as a part of the heap. */
static bool lend(int me, int n)
{
    const size_t bytes = 1 << 16;
    long *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool fine = true;

    if (mine == MAP_FAILED)
        return false;
    fine = job_try(gshmem_buffer_register(mine, bytes), "gshmem_buffer_register") &&
           job_try(gshmem_buffer_unregister(mine), "gshmem_buffer_unregister");
    if (fine && !on_gpu()) {
        long *shared = gshmem_buffer_register_symmetric(mine, bytes, 0);
        fine = job_try(shared ? GSHMEM_OK : gshmem_last_error(NULL), "register_symmetric");
        if (shared) {
            fine = put_values(shared, me, (me + 1) % n, FEW) &&
                   job_try(gshmem_barrier_all(), "barrier_all") &&
                   find_values(shared, (me + n - 1) % n, me, FEW);
            fine &= job_try(gshmem_buffer_unregister_symmetric(shared, bytes), "unregister");
        }
    }
    munmap(mine, bytes);
    return fine;
}

/* ---- Atomics, signals, waits, locks ---- */

static bool synchronize(int me, int n)
{
    const int next = (me + 1) % n, before = (me + n - 1) % n;
    struct {
        long lock, guarded, sum, any[MANY];
        uint64_t signal;
        long letter[FEW];
    } *s;
    long letter[FEW], got;
    size_t which[MANY];
    static int not_yet[MANY];

    TRY_MEMORY(s, gshmem_calloc(1, sizeof *s));
    for (int i = 0; i < FEW; i++)
        letter[i] = value_of(me, i);
    TRY(gshmem_long_atomic_add(&s->sum, me + 1, 0));
    TRY(gshmem_putmem_signal(s->letter, letter, sizeof letter, &s->signal, 1, GSHMEM_SIGNAL_ADD,
                             next));
    if (gshmem_signal_wait_until(&s->signal, GSHMEM_CMP_GE, 1) == 1 &&
        !find_values(s->letter, before, me, FEW))
        return false;
    TRY(gshmem_long_p(&s->any[2], 5, next));
    if (gshmem_long_wait_until_any(s->any, 4, NULL, GSHMEM_CMP_EQ, 5) != 2)
        TRY(gshmem_last_error(NULL));
    if (gshmem_long_wait_until_some(s->any, MANY, which, not_yet, GSHMEM_CMP_EQ, 5) != 1)
        TRY(gshmem_last_error(NULL));
    TRY(gshmem_barrier_all());
    for (int i = 0; i < 4; i++)
        TRY(gshmem_long_p(&s->any[i], 6, next));
    TRY(gshmem_long_wait_until_all(s->any, 4, NULL, GSHMEM_CMP_EQ, 6));
    TRY(gshmem_barrier_all());
    TRY(gshmem_long_get(&got, &s->sum, 1, 0));
    RIGHT(got == (long)n * (n + 1) / 2);
    for (int i = 0; i < 3; i++) {
        TRY(gshmem_set_lock(&s->lock));
        TRY(gshmem_long_get(&got, &s->guarded, 1, 0));
        TRY(gshmem_long_p(&s->guarded, got + 1, 0));
        TRY(gshmem_clear_lock(&s->lock));
    }
    TRY(gshmem_barrier_all());
    TRY(gshmem_long_get(&got, &s->guarded, 1, 0));
    RIGHT(got == 3L * n);
    TRY(gshmem_barrier_all());
    TRY(gshmem_free(s));
    return true;
}

/* ---- Teams and contexts ---- */

static bool collectives(gshmem_team_t team, long *to, long *from)
{
    const int mine = gshmem_team_my_pe(team), size = gshmem_team_n_pes(team);
    const int sizes[] = {1, FEW, 9000};

    /* NTH_SMALL: where large collectives take long */
    for (int k = 0; k < (getenv("NTH_SMALL") ? 2 : 3); k++) {
        const int count = sizes[k];
        if (!put_values(from, mine, gshmem_my_pe(), count * size))
            return false;
        TRY(gshmem_reduce(team, GSHMEM_TYPE_INT64, GSHMEM_OP_MAX, to, from, (size_t)count));
        if (!find_values(to, size - 1, gshmem_my_pe(), count))
            return false;
        TRY(gshmem_broadcastmem(team, to, from, (size_t)count * 8, size - 1));
        if (!find_values(to, size - 1, gshmem_my_pe(), count))
            return false;
        TRY(gshmem_fcollectmem(team, to, from, (size_t)count * 8));
        for (int i = 0; i < size; i++) {
            if (!find_values(to + i * count, i, gshmem_my_pe(), count))
                return false;
        }
        TRY(gshmem_collectmem(team, to, from, (size_t)count * 8));
        for (int i = 0; i < size; i++) {
            if (!find_values(to + i * count, i, gshmem_my_pe(), count))
                return false;
        }
        TRY(gshmem_alltoallmem(team, to, from, (size_t)count * 8));
        TRY(gshmem_alltoallsmem(team, to, from, 1, 1, 8, (size_t)count));
        TRY(gshmem_reducescatter(team, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, to, from, (size_t)count));
        TRY(gshmem_inscan(team, GSHMEM_TYPE_INT64, to, from, (size_t)count));
        TRY(gshmem_exscan(team, GSHMEM_TYPE_INT64, to, from, (size_t)count));
    }
    TRY(gshmem_team_sync(team));
    return true;
}

static bool contexts(gshmem_team_t team, long *to)
{
    gshmem_ctx_t ctx[12];
    long source = 7;

    for (int i = 0; i < 12; i++) {
        TRY(i % 2 ? gshmem_ctx_create(GSHMEM_CTX_PRIVATE, &ctx[i])
                  : gshmem_team_create_ctx(team, 0, &ctx[i]));
        TRY(gshmem_ctx_long_put_nbi(ctx[i], to + i, &source, 1, 0));
    }
    for (int i = 0; i < 12; i++) {
        TRY(gshmem_ctx_quiet(ctx[i]));
        TRY(gshmem_ctx_destroy(ctx[i]));
    }
    return true;
}

static bool teams(int me, int n)
{
    const gshmem_team_config_t config = {.num_contexts = 8};
    gshmem_team_t team[5];
    long *to, *from;
    int members[8];

    for (int i = 0; i < n; i++)
        members[i] = n - 1 - i;
    TRY_MEMORY(to, gshmem_calloc((size_t)n * 9000, 8));
    TRY_MEMORY(from, gshmem_calloc((size_t)n * 9000, 8));
    TRY(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, &config, GSHMEM_TEAM_NUM_CONTEXTS,
                                  &team[0]));
    TRY(gshmem_team_split_2d(team[0], 1, NULL, 0, &team[1], NULL, 0, &team[2]));
    TRY(gshmem_team_split_list(GSHMEM_TEAM_WORLD, members, n, NULL, 0, &team[3]));
    TRY(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, me, 1, 1, NULL, 0, &team[4]));
    for (int i = 0; i < 5; i++) {
        if (team[i] != GSHMEM_TEAM_INVALID && !collectives(team[i], to, from))
            return false;
    }
    if (!collectives(GSHMEM_TEAM_WORLD, to, from) || !contexts(team[0], to))
        return false;
    for (int i = 0; i < 5; i++) {
        if (team[i] != GSHMEM_TEAM_INVALID)
            TRY(gshmem_team_destroy(team[i]));
    }
    TRY(gshmem_free(to));
    TRY(gshmem_free(from));
    return true;
}

/* ---- Threads ---- */

static long *thread_words;

static void *thread_main(void *argument)
{
    const int next = (gshmem_my_pe() + 1) % gshmem_n_pes(), number = *(int *)argument;
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < 20 && !status; i++)
        status = gshmem_long_p(&thread_words[number], i + 1, next);
    status = status ? status : gshmem_quiet();
    return status ? argument : NULL;
}

static bool threads(int me, int n)
{
    pthread_t thread[2];
    int number[2] = {0, 1};
    bool begun[2], fine = true;
    long got;

    (void)me, (void)n;
    TRY_MEMORY(thread_words, gshmem_calloc(2, sizeof *thread_words));
    for (int i = 0; i < 2; i++)
        begun[i] = pthread_create(&thread[i], NULL, thread_main, &number[i]) == 0;
    for (int i = 0; i < 2; i++) {
        void *failed = NULL;
        if (begun[i])
            pthread_join(thread[i], &failed);
        fine &= begun[i] && !failed;
    }
    if (!fine)
        return false;
    TRY(gshmem_barrier_all());
    for (int i = 0; i < 2; i++) {
        TRY(gshmem_long_get(&got, &thread_words[i], 1, gshmem_my_pe()));
        RIGHT(got == 20);
    }
    TRY(gshmem_free(thread_words));
    return true;
}

static bool work(int me, int n)
{
    return move_data(me, n) && have_child() && grow(me, n) && lend(me, n) && synchronize(me, n) && teams(me, n) &&
           threads(me, n);
}

int main(void)
{
    return job_main(work, on_gpu());
}
