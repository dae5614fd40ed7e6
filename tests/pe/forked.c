/* A child that a PE makes by fork is no PE: every call in it is refused, its end takes part in nothing, and the
 * parent goes on as if it were not there. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pe.h"

static long word, sum, one = 1;
static uint64_t flag;

/* As a program's own clean-up does, in parent and child alike. */
static void clean_up(void)
{
    if (gshmem_initialized())
        CHECK_OK(gshmem_finalize());
}

static int be_child(gshmem_ctx_t ctx, long *heap)
{
    const char *refused = "a child that a PE has made by fork";
    long value = 5;

    CHECK_EQ(gshmem_initialized(), 0);
    CHECK_EQ(gshmem_my_pe(), -1);
    CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_putmem(&word, &value, sizeof value, right()), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_long_p(heap, value, right()), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_getmem(&value, heap, sizeof value, right()), GSHMEM_ERR_STATE, refused);
    CHECK_EQ(gshmem_ctx_putmem(ctx, heap, &value, sizeof value, right()), GSHMEM_ERR_STATE);
    CHECK_FAILS(gshmem_long_atomic_inc(&word, right()), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_quiet(), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &sum, &one, 1), GSHMEM_ERR_STATE, refused);
    CHECK(!gshmem_malloc(100));
    CHECK_FAILS(gshmem_uint64_wait_until(&flag, GSHMEM_CMP_EQ, 1), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_init(), GSHMEM_ERR_STATE, refused);
    CHECK_FAILS(gshmem_finalize(), GSHMEM_ERR_STATE, refused);
    return 0;
}

#ifndef __has_feature
#define __has_feature(name) 0
#endif

/* ThreadSanitizer fails at an exit of a child of a process with threads: it ignores what such a
 * child does, and finds at its end that this was never ended. */
static void end_child(int status)
{
#if __has_feature(thread_sanitizer) || defined(__SANITIZE_THREAD__)
    fflush(NULL);
    _exit(status);
#else
    exit(status);
#endif
}

/* All of them have children at the same time, before and after they have talked to each other. */
static void fork_one(gshmem_ctx_t ctx, long *heap)
{
    const long expected = word;
    pid_t child;
    int status;

    barrier();
    CHECK((child = fork()) >= 0);
    if (child == 0)
        end_child(be_child(ctx, heap));
    CHECK_OK(gshmem_long_atomic_inc(&word, right()));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    barrier();
    CHECK_EQ(word, expected + 1);
    CHECK_EQ(*heap, 0);
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &sum, &one, 1));
    CHECK_EQ(sum, n);
}

int main(void)
{
    gshmem_ctx_t ctx;

    begin();
    CHECK_EQ(atexit(clean_up), 0);
    CHECK_OK(gshmem_ctx_create(0, &ctx));
    long *heap = take(sizeof *heap);
    *heap = 0;
    for (int i = 0; i < 3; i++)
        fork_one(ctx, heap);
    return 0; /* and clean_up finalizes */
}
