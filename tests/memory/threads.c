/* Threads that allocate at once make the PEs disagree about who asks for what: an error of the
 * program, which must be refused alike everywhere and leave the heap in order. */
#include <pthread.h>

#include "gshmem.h"

#include "check.h"

enum { THREADS = 4, CALLS = 40 };

static void *allocate(void *argument)
{
    size_t bytes = 100 * (size_t)(1 + *(int *)argument);

    for (int i = 0; i < CALLS; i++) {
        char *object = gshmem_malloc(bytes);
        if (object) {
            memset(object, *(int *)argument, bytes);
            sched_yield();
            for (size_t b = 0; b < bytes; b++)
                CHECK_EQ(object[b], *(int *)argument);
        }
        gshmem_free(object);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    int number[THREADS], provided = -1;

    setenv("GSHMEM_LOG", "none", 1);
    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    CHECK_EQ(provided, GSHMEM_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        CHECK_EQ(pthread_create(&thread[i], NULL, allocate, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);

    int *object = gshmem_malloc(sizeof(int)), me = gshmem_my_pe(), n = gshmem_n_pes();
    CHECK(object);
    CHECK_OK(gshmem_putmem(object, &me, sizeof me, (me + 1) % n));
    gshmem_barrier_all();
    CHECK_EQ(*object, (me + n - 1) % n);
    CHECK_OK(gshmem_free(object));
    CHECK_OK(gshmem_finalize());
    return 0;
}
