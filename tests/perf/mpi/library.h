/* What gshmem-perf measures, in the words of MPI's one-sided communication: one window with an
 * epoch that stays open. A blocking put is MPI_Put and a local flush; sync_all is MPI_Barrier,
 * which moves no puts, and barrier_all flushes before it. Waiting reads the window's memory. */
#ifndef PERF_LIBRARY_H
#define PERF_LIBRARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <mpi.h>

#define LIB_PROGRAM    "mpi-perf"
#define LIB_HAS_SIGNAL 0
#define LIB_HAS_SYNC   1
#define LIB_HAS_HINTS  0
#define LIB_HAS_LOCK   0
#define LIB_HAS_HEAP   0

extern MPI_Win lib_window;
extern char *lib_base;
extern int lib_pe, lib_pes;

int lib_init(void);
void *lib_alloc(size_t bytes);

static inline void lib_finalize(void)
{
    MPI_Finalize();
}

/* The first line of what the library says of itself, up to the first comma. */
static inline void lib_name(char name[64])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    snprintf(name, 64, "%.63s", text);
}

static inline int lib_my_pe(void)
{
    return lib_pe;
}

static inline int lib_n_pes(void)
{
    return lib_pes;
}

static inline void lib_free(void *ptr)
{
    (void)ptr;
    MPI_Win_unlock_all(lib_window);
    MPI_Win_free(&lib_window);
}

static inline MPI_Aint lib_offset(const void *at)
{
    return (const char *)at - lib_base;
}

static inline void lib_put_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    MPI_Put(source, (int)bytes, MPI_BYTE, pe, lib_offset(dest), (int)bytes, MPI_BYTE, lib_window);
}

static inline void lib_put(void *dest, const void *source, size_t bytes, int pe)
{
    lib_put_nbi(dest, source, bytes, pe);
    MPI_Win_flush_local(pe, lib_window);
}

static inline void lib_get(void *dest, const void *source, size_t bytes, int pe)
{
    MPI_Get(dest, (int)bytes, MPI_BYTE, pe, lib_offset(source), (int)bytes, MPI_BYTE, lib_window);
    MPI_Win_flush(pe, lib_window);
}

static inline void lib_p(long *dest, long value, int pe)
{
    MPI_Put(&value, 1, MPI_LONG, pe, lib_offset(dest), 1, MPI_LONG, lib_window);
    MPI_Win_flush(pe, lib_window);
}

static inline long lib_g(const long *source, int pe)
{
    long value;

    MPI_Get(&value, 1, MPI_LONG, pe, lib_offset(source), 1, MPI_LONG, lib_window);
    MPI_Win_flush(pe, lib_window);
    return value;
}

static inline void lib_quiet(void)
{
    MPI_Win_flush_all(lib_window);
}

static inline long lib_fetch_op(const long *target, long value, MPI_Op op, int pe)
{
    long old;

    MPI_Fetch_and_op(&value, &old, MPI_LONG, pe, lib_offset(target), op, lib_window);
    MPI_Win_flush(pe, lib_window);
    return old;
}

static inline void lib_update(long *target, long value, MPI_Op op, int pe)
{
    MPI_Accumulate(&value, 1, MPI_LONG, pe, lib_offset(target), 1, MPI_LONG, op, lib_window);
    MPI_Win_flush_local(pe, lib_window);
}

static inline long lib_fetch(const long *target, int pe)
{
    return lib_fetch_op(target, 0, MPI_NO_OP, pe);
}

static inline void lib_set(long *target, long value, int pe)
{
    lib_update(target, value, MPI_REPLACE, pe);
}

static inline void lib_add(long *target, long value, int pe)
{
    lib_update(target, value, MPI_SUM, pe);
}

static inline void lib_inc(long *target, int pe)
{
    lib_update(target, 1, MPI_SUM, pe);
}

static inline long lib_fetch_add(long *target, long value, int pe)
{
    return lib_fetch_op(target, value, MPI_SUM, pe);
}

static inline long lib_fetch_inc(long *target, int pe)
{
    return lib_fetch_op(target, 1, MPI_SUM, pe);
}

static inline long lib_swap(long *target, long value, int pe)
{
    return lib_fetch_op(target, value, MPI_REPLACE, pe);
}

static inline long lib_compare_swap(long *target, long compare, long value, int pe)
{
    long old;

    MPI_Compare_and_swap(&value, &compare, &old, MPI_LONG, pe, lib_offset(target), lib_window);
    MPI_Win_flush(pe, lib_window);
    return old;
}

static inline void lib_wait_until_equal(long *flag, long value)
{
    while (*(volatile long *)flag != value)
        MPI_Win_sync(lib_window);
}

static inline void lib_sync_all(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void lib_barrier_all(void)
{
    if (lib_window != MPI_WIN_NULL)
        MPI_Win_flush_all(lib_window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (lib_window != MPI_WIN_NULL)
        MPI_Win_sync(lib_window);
}

/* MPI sends from the buffer that it receives into: the root's source, the others' dest. */
static inline void lib_broadcast(void *dest, const void *source, size_t bytes, int root)
{
    MPI_Bcast(lib_pe == root ? (void *)source : dest, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static inline void lib_sum_reduce(long *dest, const long *source, size_t n)
{
    MPI_Allreduce(source, dest, (int)n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static inline void lib_sum_reduce_double(double *dest, const double *source, size_t n)
{
    MPI_Allreduce(source, dest, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static inline void lib_fcollect(void *dest, const void *source, size_t bytes)
{
    MPI_Allgather(source, (int)bytes, MPI_BYTE, dest, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

void lib_collect(void *dest, const void *source, size_t bytes);

static inline void lib_alltoall(void *dest, const void *source, size_t bytes)
{
    MPI_Alltoall(source, (int)bytes, MPI_BYTE, dest, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

#endif
