/* Strided and block-strided copies, compared with a plain model, gaps included. */
#include "pe.h"

enum { ROOM = 8192 };

static unsigned char model[ROOM], local[ROOM];
static unsigned char *heap;

struct shape {
    size_t element, block, n;
    ptrdiff_t dst, sst;
};

static const struct shape shapes[] = {
    {8, 1, 10, 1, 1}, {8, 1, 10, 3, 1},  {8, 1, 10, 1, 4}, {4, 1, 17, 2, 5},    {1, 1, 100, 3, 2},
    {2, 1, 33, 7, 7}, {16, 1, 12, 2, 3}, {3, 1, 11, 4, 2}, {8, 1, 0, 1, 1},     {8, 1, 1, 100, 50},
    {8, 4, 6, 4, 4},  {8, 4, 6, 5, 9},   {4, 3, 9, 7, 3},  {1, 13, 20, 13, 17}, {2, 5, 0, 5, 5},
    {16, 2, 8, 3, 2}, {8, 1, 5, 2, 1},
};

static void copy_model(unsigned char *to, const unsigned char *from, const struct shape *s)
{
    for (size_t i = 0; i < s->n; i++)
        memcpy(to + i * (size_t)s->dst * s->element, from + i * (size_t)s->sst * s->element,
               s->block * s->element);
}

static gshmem_status_t put(gshmem_ctx_t ctx, void *to, const void *from, const struct shape *s,
                           int pe)
{
    if (s->block == 1)
        return gshmem_ctx_iputmem(ctx, to, from, s->dst, s->sst, s->element, s->n, pe);
    return gshmem_ctx_ibputmem(ctx, to, from, s->dst, s->sst, s->block, s->element, s->n, pe);
}

static gshmem_status_t get(gshmem_ctx_t ctx, void *to, const void *from, const struct shape *s,
                           int pe)
{
    if (s->block == 1)
        return gshmem_ctx_igetmem(ctx, to, from, s->dst, s->sst, s->element, s->n, pe);
    return gshmem_ctx_ibgetmem(ctx, to, from, s->dst, s->sst, s->block, s->element, s->n, pe);
}

static void compare(const unsigned char *got, const struct shape *s, const char *what)
{
    for (size_t i = 0; i < ROOM; i++) {
        if (got[i] != model[i])
            CHECK_FAIL("%s of %zu blocks of %zu x %zu B, strides %td and %td: byte %zu is %d, "
                       "expected %d",
                       what, s->n, s->block, s->element, s->dst, s->sst, i, got[i], model[i]);
    }
}

static void test_shape(gshmem_ctx_t ctx, const struct shape *s, unsigned round, int distance)
{
    int to = (me + distance) % n, from = (me + n - distance) % n;

    memset(heap, 0xee, ROOM);
    fill(local, ROOM, me, round);
    barrier();
    CHECK_OK(put(ctx, heap, local, s, to));
    CHECK_OK(gshmem_ctx_quiet(ctx)); /* a barrier completes the default context alone */
    barrier();
    memset(model, 0xee, ROOM);
    fill(local, ROOM, from, round);
    copy_model(model, local, s);
    compare(heap, s, "put");
    barrier();

    fill(heap, ROOM, me, round);
    barrier();
    memset(local, 0xdd, ROOM);
    CHECK_OK(get(ctx, local, heap, s, to));
    unsigned char *theirs = malloc(ROOM);
    CHECK(theirs);
    fill(theirs, ROOM, to, round);
    memset(model, 0xdd, ROOM);
    copy_model(model, theirs, s);
    compare(local, s, "get");
    free(theirs);
    barrier();
}

int main(void)
{
    gshmem_ctx_t own;

    begin();
    heap = take(ROOM);
    CHECK_OK(gshmem_ctx_create(0, &own));
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        test_shape(GSHMEM_CTX_DEFAULT, &shapes[i], i, 0);
        test_shape(GSHMEM_CTX_DEFAULT, &shapes[i], i, 1 % n);
        test_shape(own, &shapes[i], i, n - 1);
    }
    CHECK_OK(gshmem_ctx_destroy(own));
    CHECK_OK(gshmem_free(heap));
    end();
    return 0;
}
