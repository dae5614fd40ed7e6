/* Memory-sized put and get: every kind, 0 B to 4 MiB, any alignment, to oneself and to others. */
#include "pe.h"

enum { MOST = 4 << 20, GUARD = 64 };

typedef gshmem_status_t copy_function(void *dest, const void *source, size_t bytes, int pe);

static copy_function ctx_put, ctx_get, ctx_put_nbi, ctx_get_nbi;

static gshmem_status_t ctx_put(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_ctx_putmem(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

static gshmem_status_t ctx_get(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_ctx_getmem(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

static gshmem_status_t ctx_put_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_ctx_putmem_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

static gshmem_status_t ctx_get_nbi(void *dest, const void *source, size_t bytes, int pe)
{
    return gshmem_ctx_getmem_nbi(GSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

static copy_function *const puts_[] = {gshmem_putmem, gshmem_putmem_nbi, ctx_put, ctx_put_nbi};
static copy_function *const gets_[] = {gshmem_getmem, gshmem_getmem_nbi, ctx_get, ctx_get_nbi};

enum { KINDS = sizeof puts_ / sizeof puts_[0] };

static unsigned char global[GUARD + 5000 + GUARD]; /* symmetric too */
static unsigned char *heap, *local;
static unsigned round_;

/* The object between its guards, shifted so that sizes meet all alignments. */
static void test_one(unsigned char *object, size_t room, size_t bytes, size_t shift, int distance)
{
    int to = (me + distance) % n, from = (me + n - distance) % n;
    unsigned char *at = object + GUARD / 2 + shift;

    if (GUARD / 2 + shift + bytes + GUARD / 4 > room)
        return;
    for (int kind = 0; kind < KINDS; kind++) {
        round_++;
        memset(at - GUARD / 4, 0xee, bytes + GUARD / 2);
        fill(local, bytes, me, round_);
        barrier();
        CHECK_OK(puts_[kind](at, local, bytes, to));
        barrier();
        CHECK_FILLED(at, bytes, from, round_);
        for (int i = 0; i < GUARD / 4; i++)
            CHECK(at[-1 - i] == 0xee && at[bytes + (size_t)i] == 0xee);

        memset(local, 0xdd, bytes + 1);
        CHECK_OK(gets_[kind](local, at, bytes, to));
        CHECK_OK(gshmem_quiet());
        CHECK_FILLED(local, bytes, me, round_);
        CHECK_EQ(local[bytes], 0xdd);
        barrier();
    }
}

static void test_sizes(unsigned char *object, size_t room)
{
    static const size_t sizes[] = {0,   1,    2,    3,    4,    5,     7,      8,       9,
                                   15,  16,   17,   31,   32,   63,    64,     65,      127,
                                   255, 1000, 4095, 4096, 4097, 65536, 100003, 1 << 20, MOST};

    const size_t step = (size_t)how_often(1, 5);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t shift = 0; shift < 8; shift += sizes[i] < 5000 ? step : 7) {
            for (int distance = how_often(n > 1, 0); distance < n;
                 distance += sizes[i] < 5000 && n > 2 ? n - 1 : 1)
                test_one(object, room, sizes[i], shift, distance);
        }
        if (sizes[i] > 5000 && n > 4) /* large and many: the neighbours have shown it */
            break;
    }
}

/* Both sides symmetric, and the same object on both. */
static void test_symmetric_source(void)
{
    uint64_t *cell = (uint64_t *)(void *)heap;

    cell[0] = 1000 + (uint64_t)me;
    cell[1] = 0;
    barrier();
    CHECK_OK(gshmem_putmem(&cell[1], &cell[0], 8, right()));
    barrier();
    CHECK_EQ(cell[1], 1000 + left());
    CHECK_OK(gshmem_getmem(&cell[1], &cell[0], 8, left()));
    CHECK_EQ(cell[1], 1000 + left());
    barrier();
    CHECK_OK(gshmem_putmem(&cell[0], &cell[0], 8, me));
    CHECK_EQ(cell[0], 1000 + me);
    barrier();
}

/* A put is over when its source may be used again, wherever the data is by then. */
static void test_source_again(void)
{
    enum { PUTS = 8, BYTES = MOST / PUTS };
    uint64_t *flag = (uint64_t *)(void *)(heap + MOST);
    int by_signal = 0;

    for (int turn = 0; turn < 4; turn++, by_signal = !by_signal) {
        round_++;
        *flag = 0;
        barrier();
        for (unsigned i = 0; i < PUTS; i++) {
            fill(local, BYTES, me, round_ + i);
            if (by_signal)
                CHECK_OK(gshmem_putmem_signal(heap + i * BYTES, local, BYTES, flag, 1,
                                              GSHMEM_SIGNAL_ADD, right()));
            else
                CHECK_OK(gshmem_putmem(heap + i * BYTES, local, BYTES, right()));
        }
        memset(local, 0xee, BYTES);
        if (by_signal)
            gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, PUTS);
        else
            barrier();
        for (unsigned i = 0; i < PUTS; i++)
            CHECK_FILLED(heap + i * BYTES, BYTES, left(), round_ + i);
        barrier();
        round_ += PUTS;
    }
}

/* Everybody writes to everybody, a cell each. */
static void test_all_to_all(void)
{
    int *cells = (int *)(void *)heap;

    for (int i = 0; i < n; i++)
        cells[i] = -1;
    barrier();
    for (int pe = 0; pe < n; pe++) {
        int value = me * 100 + pe;
        CHECK_OK(gshmem_putmem(&cells[me], &value, sizeof value, pe));
    }
    barrier();
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(cells[pe], pe * 100 + me);
    barrier();
}

/* Old values come by the next quiet, each in its place; of 4 bytes, they leave the next one as it
 * is. */
static void test_fetch_later(void)
{
    enum { FETCHES = 100 };
    int *counter = (int *)(void *)heap, old[FETCHES + 1];
    long *wide = (long *)(void *)(heap + 64), was[FETCHES];
    long sum = 0;

    counter[0] = 0;
    wide[0] = 1L << 40;
    old[FETCHES] = 0x5a5a5a5a;
    barrier();
    for (int i = 0; i < FETCHES; i++) {
        CHECK_OK(gshmem_int_atomic_fetch_add_nbi(&old[FETCHES - 1 - i], counter, 1, right()));
        CHECK_OK(gshmem_long_atomic_fetch_inc_nbi(&was[i], wide, right()));
    }
    CHECK_OK(gshmem_quiet());
    for (int i = 0; i < FETCHES; i++) {
        sum += old[i];
        CHECK(was[i] >= 1L << 40 && was[i] < (1L << 40) + FETCHES);
    }
    CHECK_EQ(sum, FETCHES * (FETCHES - 1) / 2); /* each value once */
    CHECK_EQ(old[FETCHES], 0x5a5a5a5a);
    barrier();
    CHECK_EQ(counter[0], FETCHES);
    CHECK_EQ(wide[0], (1L << 40) + FETCHES);
    barrier();
}

int main(void)
{
    begin();
    heap = take(MOST + 2 * GUARD);
    local = malloc(MOST + GUARD);
    CHECK(local);
    test_symmetric_source();
    test_all_to_all();
    test_fetch_later();
    test_source_again();
    test_sizes(global, sizeof global);
    test_sizes(heap, MOST + 2 * GUARD);
    free(local);
    CHECK_OK(gshmem_free(heap));
    end();
    return 0;
}
