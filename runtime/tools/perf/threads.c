/* Several threads of PE 0 that call at the same time: puts, which need no response, and calls that
 * each wait for one. All work on one long of the peer.
 *
 * An iteration is so many operations of all threads together, and for puts the quiet of each. The
 * threads exist before and after; they begin together and the loop ends with the last of them. */
#include "benchmark.h"
#include <library.h>

#if LIB_HAS_THREADS
#include <pthread.h>
#include <stdlib.h>

static struct {
    size_t n; /* threads that exist */
    pthread_t thread[THREADS_MOST];
    pthread_barrier_t begin, end;
    /* What they do next; NULL: they end. */
    void (*work)(const struct run *r, uint64_t operations);
    const struct run *run;
    uint64_t operations; /* of each */
} pool;

static void must(int error)
{
    if (error) {
        fprintf(stderr, LIB_PROGRAM ": no threads (error %d)\n", error);
        exit(1);
    }
}

static void *of_thread(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&pool.begin);
        if (!pool.work)
            return unused;
        pool.work(pool.run, pool.operations);
        pthread_barrier_wait(&pool.end);
    }
}

static void pool_end(void)
{
    if (!pool.n)
        return;
    pool.work = NULL;
    pthread_barrier_wait(&pool.begin);
    for (size_t i = 0; i < pool.n; i++)
        must(pthread_join(pool.thread[i], NULL));
    pthread_barrier_destroy(&pool.begin);
    pthread_barrier_destroy(&pool.end);
    pool.n = 0;
}

static void pool_begin(size_t n)
{
    must(pthread_barrier_init(&pool.begin, NULL, (unsigned)n + 1));
    must(pthread_barrier_init(&pool.end, NULL, (unsigned)n + 1));
    for (pool.n = 0; pool.n < n; pool.n++)
        must(pthread_create(&pool.thread[pool.n], NULL, of_thread, NULL));
}

static void by_threads(const struct run *r, uint64_t operations,
                       void (*work)(const struct run *r, uint64_t operations))
{
    if (pool.n != r->size) {
        pool_end();
        pool_begin(r->size);
    }
    pool.work = work;
    pool.run = r;
    pool.operations = operations / r->size;
    pthread_barrier_wait(&pool.begin);
    pthread_barrier_wait(&pool.end);
}

#define THREADS_LOOP(name, all, operation, after)                                                  \
    static void name##_of_thread(const struct run *r, uint64_t operations)                         \
    {                                                                                              \
        for (uint64_t i = 0; i < operations; i++) {                                                \
            operation;                                                                             \
            iteration_end();                                                                       \
        }                                                                                          \
        after;                                                                                     \
    }                                                                                              \
    void loop_threads_##name(struct run *r, uint64_t n)                                            \
    {                                                                                              \
        by_threads(r, n *(all), name##_of_thread);                                                 \
    }

THREADS_LOOP(p, THREADS_PUTS, lib_p(r->counter, (long)i, r->peer), lib_quiet())
THREADS_LOOP(g, THREADS_FETCHES, use(lib_g(r->counter, r->peer)), (void)0)
THREADS_LOOP(fetch_add, THREADS_FETCHES, use(lib_fetch_add(r->counter, 1, r->peer)), (void)0)
THREADS_LOOP(swap, THREADS_FETCHES, use(lib_swap(r->counter, (long)i, r->peer)), (void)0)
THREADS_LOOP(compare_swap, THREADS_FETCHES, use(lib_compare_swap(r->counter, 0, 0, r->peer)),
             (void)0)
#endif
