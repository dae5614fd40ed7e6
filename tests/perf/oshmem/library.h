/* What gshmem-perf measures, in OpenSHMEM 1.4's words: as Open MPI has them, the peer to beat, and
 * as GSHMEM's own shmem.h has them, for programs that were written for either. */
#ifndef PERF_LIBRARY_H
#define PERF_LIBRARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <shmem.h>

#ifdef OSHMEM_MAJOR_VERSION
#define LIB_PROGRAM "oshmem-perf"
#else
#define LIB_PROGRAM "shmem-perf"
#endif
#define LIB_HAS_SIGNAL 0 /* 1.5 */
#define LIB_HAS_SYNC   1
#define LIB_HAS_HINTS  0
#define LIB_HAS_LOCK   1
#define LIB_HAS_HEAP   1

int lib_init(void);
/* Work arrays for the next collective, the second for a reduction of n elements. */
long *lib_next_sync_work(void);
void *lib_next_reduce_work(size_t n);

static inline void lib_finalize(void)
{
    shmem_finalize();
}

static inline void lib_name(char name[64])
{
#ifdef OSHMEM_MAJOR_VERSION
    snprintf(name, 64, "Open MPI OSHMEM %d.%d.%d", OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
             OSHMEM_RELEASE_VERSION);
#else
    snprintf(name, 64, "GSHMEM's OpenSHMEM %d.%d", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
#endif
}

static inline int lib_my_pe(void)
{
    return shmem_my_pe();
}

static inline int lib_n_pes(void)
{
    return shmem_n_pes();
}

static inline void *lib_alloc(size_t bytes)
{
    return shmem_align(4096, bytes);
}

static inline void *lib_malloc(size_t bytes)
{
    return shmem_malloc(bytes);
}

static inline void lib_free(void *ptr)
{
    shmem_free(ptr);
}

static inline void lib_put(void *dest, const void *source, size_t bytes, int pe)
{
    shmem_putmem(dest, source, bytes, pe);
}

static inline void lib_get(void *dest, const void *source, size_t bytes, int pe)
{
    shmem_getmem(dest, source, bytes, pe);
}

static inline void lib_put_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    shmem_putmem_nbi(dest, source, bytes, pe);
}

static inline void lib_p(long *dest, long value, int pe)
{
    shmem_long_p(dest, value, pe);
}

static inline long lib_g(const long *source, int pe)
{
    return shmem_long_g(source, pe);
}

static inline void lib_quiet(void)
{
    shmem_quiet();
}

static inline long lib_fetch(const long *target, int pe)
{
    return shmem_long_atomic_fetch(target, pe);
}

static inline void lib_set(long *target, long value, int pe)
{
    shmem_long_atomic_set(target, value, pe);
}

static inline void lib_add(long *target, long value, int pe)
{
    shmem_long_atomic_add(target, value, pe);
}

static inline void lib_inc(long *target, int pe)
{
    shmem_long_atomic_inc(target, pe);
}

static inline long lib_fetch_add(long *target, long value, int pe)
{
    return shmem_long_atomic_fetch_add(target, value, pe);
}

static inline long lib_fetch_inc(long *target, int pe)
{
    return shmem_long_atomic_fetch_inc(target, pe);
}

static inline long lib_swap(long *target, long value, int pe)
{
    return shmem_long_atomic_swap(target, value, pe);
}

static inline long lib_compare_swap(long *target, long compare, long value, int pe)
{
    return shmem_long_atomic_compare_swap(target, compare, value, pe);
}

static inline void lib_wait_until_equal(long *flag, long value)
{
    shmem_long_wait_until(flag, SHMEM_CMP_EQ, value);
}

static inline void lib_barrier_all(void)
{
    shmem_barrier_all();
}

static inline void lib_sync_all(void)
{
    shmem_sync_all();
}

static inline void lib_set_lock(long *lock)
{
    shmem_set_lock(lock);
}

static inline void lib_clear_lock(long *lock)
{
    shmem_clear_lock(lock);
}

static inline void lib_broadcast(void *dest, const void *source, size_t bytes, int root)
{
    shmem_broadcast64(dest, source, bytes / 8, root, 0, 0, shmem_n_pes(), lib_next_sync_work());
}

static inline void lib_sum_reduce(long *dest, const long *source, size_t n)
{
    shmem_long_sum_to_all(dest, (long *)source, (int)n, 0, 0, shmem_n_pes(),
                          lib_next_reduce_work(n), lib_next_sync_work());
}

static inline void lib_sum_reduce_double(double *dest, const double *source, size_t n)
{
    shmem_double_sum_to_all(dest, (double *)source, (int)n, 0, 0, shmem_n_pes(),
                            lib_next_reduce_work(n), lib_next_sync_work());
}

static inline void lib_fcollect(void *dest, const void *source, size_t bytes)
{
    shmem_fcollect64(dest, source, bytes / 8, 0, 0, shmem_n_pes(), lib_next_sync_work());
}

static inline void lib_collect(void *dest, const void *source, size_t bytes)
{
    shmem_collect64(dest, source, bytes / 8, 0, 0, shmem_n_pes(), lib_next_sync_work());
}

static inline void lib_alltoall(void *dest, const void *source, size_t bytes)
{
    shmem_alltoall64(dest, source, bytes / 8, 0, 0, shmem_n_pes(), lib_next_sync_work());
}

#endif
