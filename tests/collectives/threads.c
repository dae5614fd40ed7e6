/* Threads of a PE, each with a team of its own: their collectives and splits run at the same time,
 * and come in different orders on different PEs. */
#include <pthread.h>

#include "groups.h"
#include "runtime/job/extensions.h"

enum { THREADS = 4, STEPS = 150, ROOM = 4096 };

struct worker {
    pthread_t thread;
    int number;
    gshmem_team_t team;
    long *source, *dest; /* [ROOM] */
};

static void sum_up(struct worker *w, gshmem_team_t team, size_t n, long salt)
{
    int members = gshmem_team_n_pes(team);

    for (size_t i = 0; i < n; i++)
        w->source[i] = salt + gshmem_team_my_pe(team) + (long)i;
    CHECK_OK(gshmem_reduce(team, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, w->dest, w->source, n));
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(w->dest[i], (salt + (long)i) * members + (long)members * (members - 1) / 2);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    int members = gshmem_team_n_pes(w->team);

    for (int step = 0; step < STEPS; step++) {
        gshmem_team_t part;
        long salt = w->number * 1000 + step;

        skew((uint64_t)salt);
        sum_up(w, w->team, (size_t)(step % 10 == 0 ? ROOM : step), salt);
        CHECK_OK(gshmem_team_split_strided(w->team, step % members, -1, 1 + step % members, NULL, 0,
                                           &part));
        if (part == GSHMEM_TEAM_INVALID)
            continue;
        CHECK_EQ(gshmem_team_n_pes(part), 1 + step % members);
        sum_up(w, part, (size_t)step, salt);
        CHECK_OK(gshmem_team_destroy(part));
    }
    return NULL;
}

/* ---- Teams made at once, by PEs that come in different orders ---- */

enum { CROSSINGS = 3 };

static gshmem_team_t first;

static void split(gshmem_team_t parent)
{
    gshmem_team_t part;

    CHECK_OK(gshmem_team_split_strided(parent, 0, 1, gshmem_n_pes(), NULL, 0, &part));
    CHECK_OK(gshmem_team_sync(part));
    CHECK_OK(gshmem_team_destroy(part));
}

static void *split_first(void *unused)
{
    split(first);
    return unused;
}

/* PE 0 splits a team in a thread, which waits for the others; meanwhile it makes another one, for which the
 * others have come. `set`: an active set of all PEs but the last in place of a team. */
static void cross(gshmem_team_t second, long *set)
{
    const int n = gshmem_n_pes(), me = gshmem_my_pe();
    gshmem_team_t team;
    pthread_t thread;

    if (me == 0) {
        CHECK_EQ(pthread_create(&thread, NULL, split_first, NULL), 0);
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL); /* or it tries nothing */
    }
    if (!set) {
        split(second);
    } else if (me < n - 1) {
        CHECK_OK(gshmem_path_active_set(0, 0, n - 1, set, "test", &team));
        CHECK_OK(gshmem_team_sync(team));
    }
    if (me == 0)
        CHECK_EQ(pthread_join(thread, NULL), 0);
    else
        split(first);
}

static void cross_orders(void)
{
    static long set[ACTIVE_SET_WORDS];
    gshmem_team_t second;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, gshmem_n_pes(), NULL, 0, &first));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, gshmem_n_pes(), NULL, 0, &second));
    for (int i = 0; i < CROSSINGS; i++)
        cross(second, NULL);
    if (gshmem_n_pes() > 2) /* of all PEs it would be the world */
        cross(second, set);
    CHECK_OK(gshmem_team_destroy(second));
    CHECK_OK(gshmem_team_destroy(first));
}

int main(void)
{
    struct worker workers[THREADS];
    int provided;

    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    CHECK_EQ(provided, GSHMEM_THREAD_MULTIPLE);
    long *room = gshmem_malloc(THREADS * 2 * ROOM * sizeof *room);
    CHECK(room != NULL);
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &workers[i];
        w->number = i;
        w->source = room + (size_t)(2 * i) * ROOM;
        w->dest = w->source + ROOM;
        CHECK_OK(
            gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, gshmem_n_pes(), NULL, 0, &w->team));
    }
    for (int i = 0; i < THREADS; i++) /* started in another order on each PE */
        CHECK_EQ(pthread_create(&workers[(i + gshmem_my_pe()) % THREADS].thread, NULL, work,
                                &workers[(i + gshmem_my_pe()) % THREADS]),
                 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_OK(gshmem_team_destroy(workers[i].team));
    cross_orders();
    CHECK_OK(gshmem_free(room));
    CHECK_OK(gshmem_finalize());
    return 0;
}
