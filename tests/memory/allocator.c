/* The allocator against a model that is too simple to be wrong: one entry per 16 bytes. */
#include <stdint.h>

#include "check.h"
#include "runtime/memory/allocator.h"

enum { GRAIN = 16, GRAINS = 2048, LIMIT = GRAIN * GRAINS, OBJECTS = 256 };

/* ---- Memory for the bookkeeping, which can be made to run out (the linker's --wrap) ---- */

static long allocations_left = -1; /* -1: no limit */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

static int refuse(void)
{
    if (allocations_left < 0)
        return 0;
    if (allocations_left == 0)
        return 1;
    allocations_left--;
    return 0;
}

void *__wrap_malloc(size_t bytes)
{
    return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return refuse() ? NULL : __real_calloc(n, bytes);
}

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % n;
}

/* ---- The model ---- */

struct model {
    int owner[GRAINS];           /* 1 + object, 0: free */
    unsigned char freed[GRAINS]; /* an object that began here was given back */
    size_t offset[OBJECTS];
    size_t asked[OBJECTS]; /* 0: no such object */
};

static size_t grains(size_t bytes)
{
    return (bytes + GRAIN - 1) / GRAIN;
}

static int model_is_free(const struct model *m, size_t grain, size_t n)
{
    for (size_t i = grain; i < grain + n; i++) {
        if (i >= GRAINS || m->owner[i])
            return 0;
    }
    return 1;
}

static int model_has_room(const struct model *m, size_t bytes, size_t alignment)
{
    size_t step = alignment < GRAIN ? 1 : alignment / GRAIN;

    for (size_t g = 0; g < GRAINS; g += step) {
        if (model_is_free(m, g, grains(bytes)))
            return 1;
    }
    return 0;
}

static void model_set(struct model *m, int object, size_t first, size_t n, int owner)
{
    for (size_t i = first; i < first + n; i++) {
        m->owner[i] = owner;
        if (owner)
            m->freed[i] = 0;
    }
    if (!owner && object >= 0)
        m->freed[first] = 1;
}

static void compare_totals(const struct model *m, const struct allocator *a)
{
    size_t used = 0, objects = 0, largest = 0, run = 0, top = 0;

    for (size_t g = 0; g < GRAINS; g++) {
        run = m->owner[g] ? 0 : run + 1;
        largest = run > largest ? run : largest;
        used += m->owner[g] != 0;
        top = m->owner[g] ? g + 1 : top;
    }
    for (int i = 0; i < OBJECTS; i++)
        objects += m->asked[i] != 0;
    CHECK_EQ(allocator_used(a), used * GRAIN);
    CHECK_EQ(allocator_objects(a), objects);
    CHECK_EQ(allocator_largest(a), largest * GRAIN);
    CHECK_EQ(allocator_top(a), top * GRAIN);
}

static void compare_answer(const struct model *m, const struct allocator *a, size_t offset)
{
    size_t object = 0, bytes = 0, g = offset / GRAIN;
    enum allocator_answer answer = allocator_look(a, offset, &object, &bytes);

    if (offset < LIMIT && m->owner[g]) {
        int i = m->owner[g] - 1;
        CHECK_EQ(answer, offset == m->offset[i] ? ALLOCATOR_OK : ALLOCATOR_INSIDE);
        CHECK_EQ(object, m->offset[i]);
        CHECK_EQ(bytes, m->asked[i]);
    } else if (offset < LIMIT && m->freed[g] && offset % GRAIN == 0) {
        CHECK_EQ(answer, ALLOCATOR_FREED);
    } else {
        CHECK_EQ(answer, ALLOCATOR_FOREIGN);
    }
}

/* ---- What the two are put through ---- */

static size_t random_size(void)
{
    static const uint32_t most[] = {16, 64, 300, 2000, LIMIT / 4, LIMIT + 100};

    return 1 + random_below(most[random_below(random_below(20) ? 4 : 6)]);
}

static void take(struct model *m, struct allocator *a, struct allocator *twin, int object)
{
    size_t bytes = random_size(), alignment = (size_t)1 << random_below(random_below(4) ? 7 : 16);
    size_t offset = 1, same = 2;
    bool got = allocator_take(a, bytes, alignment, &offset);

    CHECK_EQ(allocator_take(twin, bytes, alignment, &same), got);
    CHECK_EQ(got, model_has_room(m, bytes, alignment));
    if (!got) {
        CHECK_EQ(offset, 1); /* set only on success */
        return;
    }
    CHECK_EQ(offset, same);
    CHECK_EQ(offset % (alignment < GRAIN ? GRAIN : alignment), 0);
    CHECK(model_is_free(m, offset / GRAIN, grains(bytes)));
    m->offset[object] = offset;
    m->asked[object] = bytes;
    model_set(m, object, offset / GRAIN, grains(bytes), object + 1);
}

/* At a place that is free or not, within the limit or not, at a grain or not. */
static void take_at(struct model *m, struct allocator *a, struct allocator *twin, int object)
{
    size_t bytes = random_size(), first = random_below(GRAINS + 4);
    size_t offset = first * GRAIN + (random_below(8) ? 0 : 1 + random_below(GRAIN - 1));
    bool got = allocator_take_at(a, offset, bytes);

    CHECK_EQ(allocator_take_at(twin, offset, bytes), got);
    CHECK_EQ(got, offset % GRAIN == 0 && model_is_free(m, first, grains(bytes)));
    if (!got)
        return;
    m->offset[object] = offset;
    m->asked[object] = bytes;
    model_set(m, object, first, grains(bytes), object + 1);
}

static void give(struct model *m, struct allocator *a, struct allocator *twin, int object)
{
    CHECK_EQ(allocator_give(a, m->offset[object]), ALLOCATOR_OK);
    CHECK_EQ(allocator_give(twin, m->offset[object]), ALLOCATOR_OK);
    CHECK_EQ(allocator_give(a, m->offset[object]), ALLOCATOR_FREED);
    model_set(m, object, m->offset[object] / GRAIN, grains(m->asked[object]), 0);
    m->asked[object] = 0;
}

static void resize(struct model *m, struct allocator *a, struct allocator *twin, int object)
{
    size_t bytes = random_size(), first = m->offset[object] / GRAIN;
    size_t before = grains(m->asked[object]), after = grains(bytes);
    int fits = after <= before || model_is_free(m, first + before, after - before);

    CHECK_EQ(allocator_resize(a, m->offset[object], bytes), fits);
    CHECK_EQ(allocator_resize(twin, m->offset[object], bytes), fits);
    if (!fits)
        return;
    if (after > before)
        model_set(m, object, first + before, after - before, object + 1);
    else
        model_set(m, -1, first + after, before - after, 0);
    m->asked[object] = bytes;
}

static void random_calls(int calls)
{
    static struct model m;
    struct allocator *a = allocator_create(LIMIT + 5), *twin = allocator_create(LIMIT + 5);

    memset(&m, 0, sizeof m);
    CHECK(a && twin);
    for (int i = 0; i < calls; i++) {
        /* Waves: mostly taking, then mostly giving back. */
        int object = (int)random_below(OBJECTS), growing = i / 1000 % 2 == 0;
        if (!m.asked[object]) {
            if (growing || random_below(4) == 0)
                (random_below(4) ? take : take_at)(&m, a, twin, object);
        } else if (random_below(8) == 0) {
            resize(&m, a, twin, object);
        } else if (!growing || random_below(4) == 0) {
            give(&m, a, twin, object);
        }
        compare_totals(&m, a);
        compare_answer(&m, a, random_below(LIMIT + 64));
        compare_answer(&m, a, random_below(GRAINS) * (size_t)GRAIN);
    }
    for (int i = 0; i < OBJECTS; i++) {
        if (m.asked[i])
            give(&m, a, twin, i);
    }
    CHECK_EQ(allocator_used(a), 0);
    CHECK_EQ(allocator_objects(a), 0);
    CHECK_EQ(allocator_largest(a), LIMIT); /* one range again */
    CHECK_EQ(allocator_top(a), 0);
    allocator_destroy(a);
    allocator_destroy(twin);
}

static void limits(void)
{
    size_t offset = 7, object, bytes;
    struct allocator *a = allocator_create(0);

    CHECK(a);
    CHECK(!allocator_take(a, 1, 16, &offset));
    CHECK(!allocator_take_at(a, 0, 1));
    CHECK_EQ(allocator_look(a, 0, &object, &bytes), ALLOCATOR_FOREIGN);
    CHECK_EQ(allocator_top(a), 0);
    CHECK_EQ(allocator_largest(a), 0);
    allocator_destroy(a);

    size_t limit = (size_t)1 << 46;
    a = allocator_create(limit);
    CHECK(a);
    CHECK(!allocator_take(a, 0, 16, &offset));
    CHECK(!allocator_take(a, SIZE_MAX, 16, &offset));
    CHECK(!allocator_take(a, limit + 1, 16, &offset));
    CHECK(!allocator_take(a, 16, (size_t)1 << 63, &offset));
    CHECK_EQ(offset, 7);
    CHECK(!allocator_take_at(a, 0, 0));
    CHECK(!allocator_take_at(a, 16, SIZE_MAX));
    CHECK(!allocator_take_at(a, 16, limit));
    CHECK(!allocator_take_at(a, limit, 1));
    CHECK(!allocator_take_at(a, SIZE_MAX - 15, 16));
    CHECK(allocator_take(a, 1, 1, &offset));
    CHECK_EQ(offset, 0);
    CHECK(allocator_take(a, 1, limit / 2, &offset)); /* the gap before it stays usable */
    CHECK_EQ(offset, limit / 2);
    CHECK(!allocator_take(a, 1, limit, &offset));
    CHECK(allocator_take(a, limit / 2 - 16, 16, &offset));
    CHECK_EQ(offset, 16);
    CHECK(allocator_take(a, limit / 2 - 16, 16, &offset));
    CHECK(!allocator_take(a, 1, 1, &offset)); /* full to the last byte */
    CHECK_EQ(allocator_used(a), limit);
    CHECK_EQ(allocator_top(a), limit);
    CHECK_EQ(allocator_give(a, SIZE_MAX), ALLOCATOR_FOREIGN);
    allocator_destroy(a);
    allocator_destroy(NULL);
}

/* Many spaces that are large enough and badly aligned must not hide one that fits. */
static void alignment_among_many(void)
{
    enum { HOLES = 1000, HOLE = 4096, STEP = HOLE + 16 };
    const size_t limit = (size_t)HOLES * STEP;
    size_t offset, keep;
    struct allocator *a = allocator_create(limit);

    CHECK(a);
    for (size_t i = 0; i < HOLES; i++) {
        CHECK(allocator_take(a, HOLE, 16, &offset));
        CHECK(allocator_take(a, 16, 16, &keep));
        CHECK_EQ(keep, i * STEP + HOLE);
    }
    for (size_t i = 1; i < HOLES; i++)
        CHECK_EQ(allocator_give(a, i * STEP), ALLOCATOR_OK);
    /* Only holes 256, 512 and 768 begin at a multiple of 4 KiB, only 512 at one of 8 KiB. */
    CHECK(allocator_take(a, HOLE, 1 << 12, &offset));
    CHECK_EQ(offset, 256 * STEP);
    CHECK(allocator_take(a, HOLE, 1 << 13, &offset));
    CHECK_EQ(offset, 512 * STEP);
    CHECK(!allocator_take(a, HOLE, 1 << 13, &offset));
    CHECK(allocator_take(a, HOLE - 96, 64, &offset));
    CHECK_EQ(offset % 64, 0);
    allocator_destroy(a);
}

static void many_objects(void)
{
    enum { N = 100000 };
    static size_t at[N];
    struct allocator *a = allocator_create((size_t)1 << 40);

    CHECK(a);
    for (int i = 0; i < N; i++)
        CHECK(allocator_take(a, 1 + random_below(5000), 16, &at[i]));
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < N; i += 2)
            CHECK_EQ(allocator_give(a, at[i]), ALLOCATOR_OK);
        if (round == 0) {
            for (int i = 0; i < N; i += 2)
                CHECK(allocator_take(a, 1 + random_below(5000), 64, &at[i]));
            for (int i = 0; i < N; i += 2)
                CHECK_EQ(allocator_give(a, at[i]), ALLOCATOR_OK);
        }
    }
    CHECK_EQ(allocator_largest(a), (size_t)1 << 40);
    allocator_destroy(a);
}

/* Wherever memory for the bookkeeping ends, the call that met it has changed nothing. */
static void out_of_memory(void)
{
    allocations_left = 0;
    CHECK(!allocator_create(LIMIT));
    allocations_left = 1;
    CHECK(!allocator_create(LIMIT));
    allocations_left = -1;

    struct allocator *a = allocator_create((size_t)1 << 30);
    CHECK(a);
    allocations_left = 6;
    size_t offset = 0, taken = 0, object, bytes;
    while (allocator_take(a, 16, 32, &offset)) /* gaps between them: two ranges each */
        taken++;
    CHECK(taken > 100 && taken < 10000);
    CHECK_EQ(allocator_objects(a), taken);
    CHECK_EQ(allocator_used(a), taken * 16);
    CHECK_EQ(allocator_top(a), (taken - 1) * 32 + 16);
    CHECK(!allocator_resize(a, 0, 8192));
    CHECK_EQ(allocator_look(a, taken * 32, &object, &bytes), ALLOCATOR_FOREIGN);
    for (size_t i = 0; i < taken; i++) /* giving back needs none */
        CHECK_EQ(allocator_give(a, i * 32), ALLOCATOR_OK);
    CHECK_EQ(allocator_largest(a), (size_t)1 << 30);
    CHECK(allocator_give(a, 0) != ALLOCATOR_OK);
    allocations_left = -1;
    CHECK(allocator_take(a, 1 << 20, 1 << 20, &offset));
    allocator_destroy(a);
}

int main(void)
{
    limits();
    random_calls(20000);
    alignment_among_many();
    many_objects();
    out_of_memory();
    return 0;
}
