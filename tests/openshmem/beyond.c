/* What programs of the field pass and name beyond OpenSHMEM 1.6, and other libraries take: volatile
 * variables to waits, unsigned numbers to the deprecated atomics, signed ones of any size to
 * bitwise reductions, names from before a function was standard. Valid as C11 and as C++. */
#define SHMEM_INTERNAL_INCLUDE /* for the list of types */
#include <shmemx.h>

#include "check.h"

static int me, n_pes, to, from;

/* Every PE has an element of its own on the next PE, with a type's name and a value that tells the
 * types apart. */
#define OWN(NAME, TYPE) static TYPE own_##NAME
SHMEM_DECLARE_FOR_RMA(OWN);

static void list_of_types(void)
{
    int types = 0;
#define SEND(NAME, TYPE) shmem_##NAME##_p(&own_##NAME, (TYPE)(types++ + me), to)
    SHMEM_DECLARE_FOR_RMA(SEND);
    CHECK_EQ(types, 24);

    shmem_barrier_all();
    types = 0;
#define CAME(NAME, TYPE) CHECK(own_##NAME == (TYPE)(types++ + from))
    SHMEM_DECLARE_FOR_RMA(CAME);
}

/* All eight old names, on a variable of which only PE `from` changes mine. */
#define OLD_NAMES(TYPE)                                                                            \
    do {                                                                                           \
        static TYPE there;                                                                         \
        const TYPE big = (TYPE)-9; /* for unsigned types half the range away from an int */        \
                                                                                                   \
        shmem_set(&there, big, to);                                                                \
        CHECK(shmem_fetch(&there, to) == big);                                                     \
        CHECK(shmem_swap(&there, (TYPE)5, to) == big);                                             \
        CHECK(shmem_cswap(&there, (TYPE)4, (TYPE)6, to) == 5);                                     \
        CHECK(shmem_cswap(&there, (TYPE)5, (TYPE)6, to) == 5);                                     \
        CHECK(shmem_finc(&there, to) == 6);                                                        \
        shmem_inc(&there, to);                                                                     \
        CHECK(shmem_fadd(&there, big, to) == 8);                                                   \
        shmem_add(&there, (TYPE)me, to);                                                           \
        shmem_barrier_all();                                                                       \
        CHECK(there == (TYPE)(8 + big + (TYPE)from));                                              \
    } while (0)

static void deprecated_atomics(void)
{
    static float real;
    static uint32_t half;
    static size_t size;

    OLD_NAMES(int);
    OLD_NAMES(long long);
    OLD_NAMES(unsigned int);
    OLD_NAMES(unsigned long);
    OLD_NAMES(unsigned long long);
    OLD_NAMES(int64_t);
    OLD_NAMES(uint32_t);
    OLD_NAMES(size_t);
    OLD_NAMES(ptrdiff_t);

    shmem_set(&real, 0.5F, to);
    CHECK(shmem_swap(&real, 1.5F, to) == 0.5F);
    CHECK(shmem_fetch(&real, to) == 1.5F);

    shmem_uint32_set(&half, UINT32_MAX, to);
    CHECK_EQ(shmem_uint32_swap(&half, 1, to), UINT32_MAX);
    shmem_size_inc(&size, to);
    CHECK_EQ(shmem_size_fadd(&size, SIZE_MAX, to), 1);
    CHECK_EQ(shmem_size_cswap(&size, 0, 2, to), 0);
    CHECK_EQ(shmem_size_fetch(&size, to), 2);
}

/* In the upper half of a type: who takes it for a narrower one sees 0. */
#define UPPER(TYPE, n) ((TYPE)((TYPE)(n) << (4 * sizeof(TYPE))))
#define ARRIVES(TYPE)                                                                              \
    do {                                                                                           \
        static volatile TYPE first, second;                                                        \
                                                                                                   \
        CHECK(!shmem_test(&second, arrived, 0));                                                   \
        shmem_p((TYPE *)&first, UPPER(TYPE, me + 1), to);                                          \
        shmem_barrier_all();                                                                       \
        CHECK(shmem_test(&first, SHMEM_CMP_NE, 0));                                                \
        shmem_wait_until(&first, SHMEM_CMP_EQ, UPPER(TYPE, from + 1));                             \
        shmem_p((TYPE *)&second, (TYPE)(me + 1), to);                                              \
        shmem_wait_until(&second, arrived, 0);                                                     \
        CHECK(second == (TYPE)(from + 1));                                                         \
    } while (0)

static void volatile_variables(void)
{
    const shmem_cmp_t arrived = SHMEM_CMP_GT;

    ARRIVES(short);
    ARRIVES(int);
    ARRIVES(long);
    ARRIVES(long long);
    ARRIVES(unsigned short);
    ARRIVES(unsigned int);
    ARRIVES(unsigned long);
    ARRIVES(unsigned long long);
    ARRIVES(uint64_t);
#ifdef __cplusplus /* C takes them with a warning */
    static volatile long word;
    static volatile uint32_t half;

    shmem_long_p((long *)&word, 1, to);
    shmem_uint32_p((uint32_t *)&half, 1, to);
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
    while (!shmem_uint32_test(&half, SHMEM_CMP_EQ, 1))
        ;
#endif
}

#define BITS(TYPE)                                                                                 \
    do {                                                                                           \
        static TYPE mine, all;                                                                     \
        const TYPE high = (TYPE)-16;                                                               \
                                                                                                   \
        mine = (TYPE)(high | (TYPE)me);                                                            \
        shmemx_sync(SHMEM_TEAM_WORLD);                                                             \
        CHECK_ZERO(shmem_and_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1));                            \
        CHECK(all == (TYPE)(high | of_all.ands));                                                  \
        CHECK_ZERO(shmem_or_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1));                             \
        CHECK(all == (TYPE)(high | of_all.ors));                                                   \
        CHECK_ZERO(shmem_xor_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1));                            \
        CHECK(all == (TYPE)((n_pes % 2 ? high : 0) | of_all.xors));                                \
    } while (0)

static void bits_of_signed_numbers(void)
{
    struct {
        int ands, ors, xors;
    } of_all = {15, 0, 0};

    for (int pe = 0; pe < n_pes; pe++) {
        of_all.ands &= pe;
        of_all.ors |= pe;
        of_all.xors ^= pe;
    }
    BITS(signed char);
    BITS(short);
    BITS(int);
    BITS(long);
    BITS(long long);
    BITS(unsigned long long);
}

static void names_of_before(void)
{
    static unsigned long bits;

    shmemx_ulong_atomic_or(&bits, 0xFF0UL, to);
    CHECK_EQ(shmemx_ulong_atomic_fetch_xor(&bits, 0x0F0UL, to), 0xFF0UL);
    CHECK_EQ(shmemx_atomic_fetch_and(&bits, 0x00FUL + 0xF00UL, to), 0xF00UL);
    shmem_barrier_all();
    CHECK_EQ(bits, 0xF00UL);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    to = (me + 1) % n_pes;
    from = (me + n_pes - 1) % n_pes;

    list_of_types();
    deprecated_atomics();
    volatile_variables();
    bits_of_signed_numbers();
    names_of_before();
    shmem_finalize();
    return 0;
}
