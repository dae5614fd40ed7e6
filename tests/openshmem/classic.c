/* Programs of OpenSHMEM 1.2 and before: start_pes, active sets with pSync and pWrk, names that have been
 * replaced since. Every set of PEs that the numbers allow is tried. */
#define SHMEM_NO_INLINE /* each by the library's function */
#include <mpp/shmem.h>
#include <mpp/shmemx.h>

#include "check.h"

enum { N = 5, MOST = 8 };

static int me, n_pes;
static long sync_a[SHMEM_SYNC_SIZE], sync_b[SHMEM_SYNC_SIZE];

struct set {
    int start, log_stride, size, my; /* my: this PE's number in it */
};

static int member(const struct set *s, int i)
{
    return s->start + (i << s->log_stride);
}

static void check_sync(const char *what)
{
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) {
        if (sync_a[i] != SHMEM_SYNC_VALUE || sync_b[i] != SHMEM_SYNC_VALUE)
            CHECK_FAIL("%s: pSync[%d] is %ld and %ld", what, i, sync_a[i], sync_b[i]);
    }
}

/* ---- Data movement ---- */

#define MOVEMENT(bits)                                                                             \
    static void move##bits(const struct set *s)                                                    \
    {                                                                                              \
        typedef uint##bits##_t T;                                                                  \
        static T dest[MOST * N * 3], source[MOST * N * 3];                                         \
        int root = s->size - 1, at = 0;                                                            \
                                                                                                   \
        for (int i = 0; i < MOST * N * 3; i++) {                                                   \
            source[i] = (T)(me * 1000 + i);                                                        \
            dest[i] = 7;                                                                           \
        }                                                                                          \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
        shmem_broadcast##bits(dest, source, N, root, s->start, s->log_stride, s->size, sync_a);    \
        for (int i = 0; i < N; i++) /* the root's own dest is left alone */                        \
            CHECK_EQ(dest[i], s->my == root ? 7 : member(s, root) * 1000 + i);                     \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
                                                                                                   \
        shmem_fcollect##bits(dest, source, N, s->start, s->log_stride, s->size, sync_a);           \
        for (int i = 0; i < N * s->size; i++)                                                      \
            CHECK_EQ(dest[i], member(s, i / N) * 1000 + i % N);                                    \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
                                                                                                   \
        shmem_collect##bits(dest, source, (size_t)(s->my % 3), s->start, s->log_stride, s->size,   \
                            sync_a);                                                               \
        for (int pe = 0; pe < s->size; pe++) {                                                     \
            for (int i = 0; i < pe % 3; i++, at++)                                                 \
                CHECK_EQ(dest[at], member(s, pe) * 1000 + i);                                      \
        }                                                                                          \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
                                                                                                   \
        shmem_alltoall##bits(dest, source, N, s->start, s->log_stride, s->size, sync_a);           \
        for (int i = 0; i < N * s->size; i++)                                                      \
            CHECK_EQ(dest[i], member(s, i / N) * 1000 + s->my * N + i % N);                        \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
                                                                                                   \
        for (int i = 0; i < MOST * N * 3; i++)                                                     \
            dest[i] = 7;                                                                           \
        shmem_sync(s->start, s->log_stride, s->size, sync_b);                                      \
        shmem_alltoalls##bits(dest, source, 2, 3, N, s->start, s->log_stride, s->size, sync_a);    \
        for (int i = 0; i < N * s->size; i++) {                                                    \
            CHECK_EQ(dest[2 * i], member(s, i / N) * 1000 + (s->my * N + i % N) * 3);              \
            CHECK_EQ(dest[2 * i + 1], 7);                                                          \
        }                                                                                          \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
    }

MOVEMENT(32)
MOVEMENT(64)

/* ---- Reductions ---- */

#define GIVE(T, pe, i) ((T)(((pe) * 3 + (i)) % 7 + 1))

#define TO_ALL(name, T, op, combined)                                                              \
    {                                                                                              \
        static T dest[N], source[N], work[N > 2 ? N : 2];                                          \
                                                                                                   \
        for (int i = 0; i < N; i++)                                                                \
            source[i] = GIVE(T, me, i);                                                            \
        shmem_barrier(s->start, s->log_stride, s->size, sync_b);                                   \
        shmem_##name##_##op##_to_all(dest, source, N, s->start, s->log_stride, s->size, work,      \
                                     sync_a);                                                      \
        for (int i = 0; i < N; i++) {                                                              \
            T a = GIVE(T, s->start, i);                                                            \
            for (int k = 1; k < s->size; k++) {                                                    \
                T b = GIVE(T, member(s, k), i);                                                    \
                a = (T)(combined);                                                                 \
            }                                                                                      \
            CHECK(dest[i] == a);                                                                   \
        }                                                                                          \
    }
#define SUMS(name, T) TO_ALL(name, T, sum, a + b) TO_ALL(name, T, prod, a *b)
#define NUMBERS(name, T)                                                                           \
    SUMS(name, T) TO_ALL(name, T, min, a < b ? a : b) TO_ALL(name, T, max, a > b ? a : b)
#define BITS(name, T)                                                                              \
    NUMBERS(name, T)                                                                               \
    TO_ALL(name, T, and, a &b) TO_ALL(name, T, or, a | b) TO_ALL(name, T, xor, a ^ b)

static void reduce(const struct set *s)
{
    BITS(short, short)
    BITS(int, int)
    BITS(long, long)
    BITS(longlong, long long)
    NUMBERS(float, float)
    NUMBERS(double, double)
    NUMBERS(longdouble, long double)
    SUMS(complexf, float _Complex)
    SUMS(complexd, double _Complex)
}

static void try_sets(void)
{
    struct set s;

    for (s.log_stride = 0; s.log_stride < 3; s.log_stride++) {
        for (s.start = 0; s.start < n_pes; s.start++) {
            for (s.size = 1; s.start + ((s.size - 1) << s.log_stride) < n_pes; s.size++) {
                int from = me - s.start;
                s.my = from >> s.log_stride;
                shmem_barrier_all(); /* pSync must not be in use by another set */
                if (from < 0 || s.my >= s.size || member(&s, s.my) != me)
                    continue;
                move32(&s);
                move64(&s);
                reduce(&s);
            }
        }
    }
    shmem_barrier_all();
    check_sync("active sets");
}

/* Where teams have taken all slots but those kept for sets, any number of sets can be used, one after
 * the other. */
static void try_many_sets(void)
{
    enum { TEAMS = 270 };
    shmem_team_t team[TEAMS];

    for (int i = 0; i < TEAMS; i++)
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &team[i]), 0);
    try_sets();
    for (int i = 0; i < TEAMS; i++)
        shmem_team_destroy(team[i]);
}

/* Sets that lie beside each other at the same time, with the same pSync. */
static void try_halves(void)
{
    static long dest, source;
    int half = n_pes / 2, start = me < half ? 0 : half, size = me < half ? half : n_pes - half;

    for (int round = 1; round < 200; round++) {
        source = me * round;
        long expected = 0;
        for (int pe = start; pe < start + size; pe++)
            expected += pe * round;
        shmem_long_sum_to_all(&dest, &source, 1, start, 0, size, NULL, round & 1 ? sync_a : sync_b);
        CHECK_EQ(dest, expected);
        shmem_barrier(start, 0, size, round & 1 ? sync_b : sync_a);
    }
    shmem_barrier_all();
    check_sync("halves");
}

/* ---- Atomics and waits by their old names ---- */

#define OLD_PLAIN(name, T)                                                                         \
    {                                                                                              \
        static T cell;                                                                             \
                                                                                                   \
        cell = 3;                                                                                  \
        shmem_barrier_all();                                                                       \
        CHECK(shmem_##name##_fetch(&cell, to) == 3);                                               \
        shmem_barrier_all();                                                                       \
        shmem_##name##_set(&cell, (T)(10 + me), to);                                               \
        shmem_barrier_all();                                                                       \
        CHECK(cell == (T)(10 + from));                                                             \
        shmem_barrier_all();                                                                       \
        CHECK(shmem_##name##_swap(&cell, (T)50, to) == (T)(10 + me));                              \
        shmem_barrier_all();                                                                       \
        CHECK(cell == (T)50);                                                                      \
        shmem_barrier_all();                                                                       \
    }
#define OLD_INTEGER(name, T)                                                                       \
    OLD_PLAIN(name, T)                                                                             \
    {                                                                                              \
        static T cell;                                                                             \
                                                                                                   \
        cell = 3;                                                                                  \
        shmem_barrier_all();                                                                       \
        CHECK(shmem_##name##_cswap(&cell, 4, 9, to) == 3);                                         \
        CHECK(shmem_##name##_cswap(&cell, 3, 20, to) == 3);                                        \
        CHECK(shmem_##name##_finc(&cell, to) == 20);                                               \
        shmem_##name##_inc(&cell, to);                                                             \
        CHECK(shmem_##name##_fadd(&cell, 5, to) == 22);                                            \
        shmem_##name##_add(&cell, 100, to);                                                        \
        shmem_barrier_all();                                                                       \
        CHECK(cell == 127);                                                                        \
        shmem_barrier_all();                                                                       \
    }

#define OLD_WAIT(name, T)                                                                          \
    {                                                                                              \
        static T flag;                                                                             \
                                                                                                   \
        flag = 1;                                                                                  \
        shmem_barrier_all();                                                                       \
        shmem_##name##_p(&flag, 2, to);                                                            \
        shmem_##name##_wait(&flag, 1);                                                             \
        CHECK(flag == 2);                                                                          \
        shmem_barrier_all();                                                                       \
    }

static void try_old_names(void)
{
    static long word;
    int to = (me + 1) % n_pes, from = (me + n_pes - 1) % n_pes;

    OLD_PLAIN(float, float)
    OLD_PLAIN(double, double)
    OLD_INTEGER(int, int)
    OLD_INTEGER(long, long)
    OLD_INTEGER(longlong, long long)
    OLD_WAIT(short, short)
    OLD_WAIT(int, int)
    OLD_WAIT(long, long)
    OLD_WAIT(longlong, long long)
    OLD_WAIT(ushort, unsigned short)
    OLD_WAIT(uint, unsigned)
    OLD_WAIT(ulong, unsigned long)
    OLD_WAIT(ulonglong, unsigned long long)
    OLD_WAIT(int32, int32_t)
    OLD_WAIT(int64, int64_t)
    OLD_WAIT(uint32, uint32_t)
    OLD_WAIT(uint64, uint64_t)
    OLD_WAIT(size, size_t)
    OLD_WAIT(ptrdiff, ptrdiff_t)

    shmem_long_p(&word, 1, to);
    shmem_wait(&word, 0);
    shmem_barrier_all();
    shmem_long_p(&word, 5, to);
    (shmem_wait_until)(&word, _SHMEM_CMP_GT, 4); /* not C11's, which has any type */
    shmem_barrier_all();

    shmem_set_cache_inv();
    shmem_clear_cache_inv();
    shmem_set_cache_line_inv(&word);
    shmem_clear_cache_line_inv(&word);
    shmem_udcflush();
    shmem_udcflush_line(&word);

    long *block = shmalloc(4 * sizeof *block);
    CHECK(block);
    block[3] = 4 + me;
    block = shrealloc(block, 4096);
    CHECK_EQ(block[3], 4 + me);
    shfree(block);
    void *aligned = shmemalign(4096, 64);
    CHECK(aligned && (uintptr_t)aligned % 4096 == 0);
    shfree(aligned);

    static long there;
    shmemx_signal_set((uint64_t *)&there, 3, to);
    shmemx_long_ibput(&there, &there, 1, 1, 1, 0, to);
    shmem_barrier_all();
    CHECK_EQ(there, 3);
    CHECK_ZERO(shmemx_long_sum_inscan(SHMEM_TEAM_WORLD, &word, &there, 1));
    CHECK_EQ(word, 3 * (me + 1));
}

int main(void)
{
    start_pes(0);
    start_pes(0); /* may be called again */
    me = _my_pe();
    n_pes = _num_pes();
    CHECK(n_pes <= MOST);
    try_old_names();
    try_many_sets();
    try_sets();
    try_halves();
    return 0; /* ends the job in good order, as it ought to */
}
