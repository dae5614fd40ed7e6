/* The calls that gshmem-perf measures, in GSHMEM's own words. Other libraries can be measured by
 * the same loops with another header of this name: tests/perf has two. */
#ifndef PERF_LIBRARY_H
#define PERF_LIBRARY_H

#include <stdio.h>

#include "gshmem.h"

#define LIB_PROGRAM    "gshmem-perf"
#define LIB_HAS_SIGNAL 1
#define LIB_HAS_SYNC   1
#define LIB_HAS_HINTS  1
#define LIB_HAS_LOCK   1
#define LIB_HAS_HEAP   1
#define LIB_HAS_INDEXED 1
#define LIB_HAS_THREADS 1

/* A benchmark of calls that fail would be fast and wrong: the error policy ends the job instead. */
static inline void lib_must(gshmem_status_t status)
{
    if (GSHMEM_UNLIKELY(status != GSHMEM_OK))
        gshmem_raise(status);
}

/* 0, or the line that says why it failed has been printed. */
static inline int lib_init(void)
{
    return gshmem_init() != GSHMEM_OK;
}

/* The same for a program whose threads call it at the same time. */
static inline int lib_init_for_threads(void)
{
    int provided;

    return gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided) != GSHMEM_OK;
}

static inline void lib_finalize(void)
{
    lib_must(gshmem_finalize());
}

static inline void lib_name(char name[64])
{
    gshmem_info_get_name(name);
}

static inline int lib_my_pe(void)
{
    return gshmem_my_pe();
}

static inline int lib_n_pes(void)
{
    return gshmem_n_pes();
}

/* Called once. NULL, on all PEs, if there is not that much. */
static inline void *lib_alloc(size_t bytes)
{
    return gshmem_align(4096, bytes);
}

/* NULL ends the program in the put that follows. */
static inline void *lib_malloc(size_t bytes)
{
    return gshmem_malloc(bytes);
}

/* For atomics of other PEs above all; small. */
static inline void *lib_alloc_for_atomics(size_t bytes)
{
    return gshmem_malloc_with_hints(bytes, GSHMEM_MALLOC_ATOMICS_REMOTE);
}

static inline void lib_free(void *ptr)
{
    lib_must(gshmem_free(ptr));
}

static inline void lib_put(void *dest, const void *source, size_t bytes, int pe)
{
    lib_must(gshmem_putmem(dest, source, bytes, pe));
}

static inline void lib_get(void *dest, const void *source, size_t bytes, int pe)
{
    lib_must(gshmem_getmem(dest, source, bytes, pe));
}

static inline void lib_put_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    lib_must(gshmem_putmem_nbi(dest, source, bytes, pe));
}

static inline void lib_p(long *dest, long value, int pe)
{
    lib_must(gshmem_long_p(dest, value, pe));
}

static inline long lib_g(const long *source, int pe)
{
    return gshmem_long_g(source, pe);
}

static inline void lib_ixget(long *dest, const long *source, const size_t *index, const int *pes,
                             size_t n)
{
    lib_must(gshmem_long_ixget_pes(dest, source, index, pes, n));
}

static inline void lib_ixput(long *dest, const long *source, const size_t *index, const int *pes,
                             size_t n)
{
    lib_must(gshmem_long_ixput_pes(dest, source, index, pes, n));
}

static inline void lib_ix_add(long *dest, const long *source, const size_t *index, const int *pes,
                              size_t n)
{
    lib_must(gshmem_long_ix_add_pes(dest, source, index, pes, n));
}

static inline void lib_quiet(void)
{
    lib_must(gshmem_quiet());
}

static inline long lib_fetch(const long *target, int pe)
{
    return gshmem_long_atomic_fetch(target, pe);
}

static inline void lib_set(long *target, long value, int pe)
{
    lib_must(gshmem_long_atomic_set(target, value, pe));
}

static inline void lib_add(long *target, long value, int pe)
{
    lib_must(gshmem_long_atomic_add(target, value, pe));
}

static inline void lib_inc(long *target, int pe)
{
    lib_must(gshmem_long_atomic_inc(target, pe));
}

static inline long lib_fetch_add(long *target, long value, int pe)
{
    return gshmem_long_atomic_fetch_add(target, value, pe);
}

static inline long lib_fetch_inc(long *target, int pe)
{
    return gshmem_long_atomic_fetch_inc(target, pe);
}

static inline long lib_swap(long *target, long value, int pe)
{
    return gshmem_long_atomic_swap(target, value, pe);
}

static inline long lib_compare_swap(long *target, long compare, long value, int pe)
{
    return gshmem_long_atomic_compare_swap(target, compare, value, pe);
}

static inline void lib_wait_until_equal(long *flag, long value)
{
    lib_must(gshmem_long_wait_until(flag, GSHMEM_CMP_EQ, value));
}

static inline void lib_put_signal(void *dest, const void *source, size_t bytes, uint64_t *signal,
                                  uint64_t value, int pe)
{
    lib_must(gshmem_putmem_signal(dest, source, bytes, signal, value, GSHMEM_SIGNAL_SET, pe));
}

static inline void lib_signal_wait_equal(uint64_t *signal, uint64_t value)
{
    gshmem_signal_wait_until(signal, GSHMEM_CMP_EQ, value);
}

static inline void lib_barrier_all(void)
{
    lib_must(gshmem_barrier_all());
}

static inline void lib_sync_all(void)
{
    lib_must(gshmem_sync_all());
}

static inline void lib_set_lock(long *lock)
{
    lib_must(gshmem_set_lock(lock));
}

static inline void lib_clear_lock(long *lock)
{
    lib_must(gshmem_clear_lock(lock));
}

static inline void lib_broadcast(void *dest, const void *source, size_t bytes, int root)
{
    lib_must(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, dest, source, bytes, root));
}

static inline void lib_sum_reduce(long *dest, const long *source, size_t n)
{
    lib_must(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, dest, source, n));
}

static inline void lib_sum_reduce_double(double *dest, const double *source, size_t n)
{
    lib_must(gshmem_double_sum_reduce(GSHMEM_TEAM_WORLD, dest, source, n));
}

static inline void lib_fcollect(void *dest, const void *source, size_t bytes)
{
    lib_must(gshmem_fcollectmem(GSHMEM_TEAM_WORLD, dest, source, bytes));
}

static inline void lib_collect(void *dest, const void *source, size_t bytes)
{
    lib_must(gshmem_collectmem(GSHMEM_TEAM_WORLD, dest, source, bytes));
}

static inline void lib_alltoall(void *dest, const void *source, size_t bytes)
{
    lib_must(gshmem_alltoallmem(GSHMEM_TEAM_WORLD, dest, source, bytes));
}

#endif
