/* Inline code by itself: which peer's memory it goes to, and what it leaves to the path out of line.
 *
 * Linked without the library: the contexts are filled in by hand, and the paths only take notes. PE 0
 * is this one, PE 1 is mapped, PE 2 is not. */
#include <stdint.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "check.h"

enum { ELEMENTS = 8 };

const char *atomic_name(int op);

static long heap[3][ELEMENTS], data[3][ELEMENTS];
static uintptr_t heap_peer[3], data_peer[3];
static struct gshmem_ctx world, nobody;

struct gshmem_ctx *const gshmem_ctx_default = &world;
struct gshmem_ctx *const gshmem_ctx_none = &nobody;

/* ---- The paths ---- */

static struct {
    int calls;
    gshmem_ctx_t ctx;
    const void *mine;
    size_t bytes;
    int pe, op, type;
    uint64_t operand, compare;
} path;

static gshmem_status_t answer; /* what they are to say */
static int raised;

static void note(gshmem_ctx_t ctx, const void *mine, size_t bytes, int pe)
{
    path.calls++;
    path.ctx = ctx;
    path.mine = mine;
    path.bytes = bytes;
    path.pe = pe;
}

gshmem_status_t gshmem_path_put(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                                int pe, int nbi)
{
    (void)source;
    (void)nbi;
    note(ctx, dest, bytes, pe);
    return answer;
}

gshmem_status_t gshmem_path_get(gshmem_ctx_t ctx, void *dest, const void *source, size_t bytes,
                                int pe, int nbi)
{
    (void)dest;
    (void)nbi;
    note(ctx, source, bytes, pe);
    return answer;
}

void gshmem_path_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

gshmem_status_t gshmem_path_atomic(gshmem_ctx_t ctx, enum gshmem_amo op, int type, void *target,
                                   uint64_t operand, uint64_t compare, uint64_t *old, int pe)
{
    note(ctx, target, 0, pe);
    path.op = op;
    path.type = type;
    path.operand = operand;
    path.compare = compare;
    if (old && !answer)
        *old = UINT64_C(0xfffffffffffffff5); /* -11 */
    return answer;
}

gshmem_status_t gshmem_path_atomic_fetch(gshmem_ctx_t ctx, enum gshmem_amo op, int type,
                                         void *target, uint64_t operand, uint64_t compare,
                                         void *fetch, int pe)
{
    uint64_t old;
    gshmem_status_t status = gshmem_path_atomic(ctx, op, type, target, operand, compare, &old, pe);

    if (!status) /* the types of the test have 4 bytes */
        memcpy(fetch, &old, 4);
    return status;
}

void gshmem_raise(gshmem_status_t status)
{
    (void)status;
    raised++;
}

gshmem_status_t fail(gshmem_status_t status, const char *format, ...)
{
    (void)format;
    return status;
}

const char *atomic_name(int op)
{
    (void)op;
    return "atomic_of_a_kind";
}

int gshmem_my_pe(void)
{
    return 0;
}

gshmem_status_t gshmem_last_error(const char **text)
{
    (void)text;
    return GSHMEM_OK;
}

const char *gshmem_status_name(gshmem_status_t status)
{
    return status ? "a failure" : "GSHMEM_OK";
}

static void reset(void)
{
    path.calls = raised = 0;
    answer = GSHMEM_OK;
}

/* That the last call went out of line once, for this. */
static void expect_path(const void *mine, size_t bytes, int pe)
{
    CHECK_EQ(path.calls, 1);
    CHECK(path.mine == mine);
    CHECK_EQ(path.bytes, bytes);
    CHECK_EQ(path.pe, pe);
    reset();
}

/* ---- What is tested ---- */

static void test_mapped(void)
{
    const long out[2] = {5, 6};
    long in[2];

    CHECK_OK(gshmem_long_put(&heap[0][3], out, 2, 1));
    CHECK_EQ(heap[1][3], 5);
    CHECK_EQ(heap[1][4], 6);
    CHECK_EQ(heap[0][3], 0);
    CHECK_OK(gshmem_long_p(&data[0][7], 7, 1));
    CHECK_EQ(data[1][7], 7);
    CHECK_EQ(gshmem_long_g(&data[0][7], 1), 7);
    CHECK_EQ(gshmem_long_g(&data[0][7], 0), 0);
    CHECK_OK(gshmem_long_get(in, &heap[0][3], 2, 1));
    CHECK_EQ(in[0] * 10 + in[1], 56);
    CHECK_EQ(gshmem_long_atomic_fetch_inc(&heap[0][3], 1), 5);
    CHECK_EQ(heap[1][3], 6);
    CHECK_EQ(path.calls, 0);
}

/* The last byte of a segment is in it, the next is not. */
static void test_bounds(void)
{
    long buffer[ELEMENTS + 1] = {0};

    CHECK_OK(gshmem_long_put(heap[0], buffer, ELEMENTS, 1));
    CHECK_OK(gshmem_long_get(buffer, &data[0][1], ELEMENTS - 1, 1));
    CHECK_EQ(path.calls, 0);
    CHECK_OK(gshmem_long_put(heap[0], buffer, ELEMENTS + 1, 1));
    expect_path(heap[0], sizeof heap[0] + sizeof(long), 1);
    CHECK_OK(gshmem_long_get(buffer, &data[0][1], ELEMENTS, 1));
    expect_path(&data[0][1], sizeof data[0], 1);
    CHECK_OK(gshmem_long_put(buffer, buffer, 1, 1));
    expect_path(buffer, sizeof(long), 1);
    CHECK_OK(gshmem_long_put(heap[0], buffer, 1, 2));
    expect_path(heap[0], sizeof(long), 2);
    CHECK_OK(gshmem_long_put(heap[0], buffer, 1, 3));
    expect_path(heap[0], sizeof(long), 3);
    CHECK_OK(gshmem_long_put(heap[0], buffer, 1, -1));
    expect_path(heap[0], sizeof(long), -1);
}

/* So many elements that their bytes, taken modulo 2^64, would be few: no object has them. */
static void test_overflow(void)
{
    long one = 1;

    CHECK_OK(gshmem_long_put(heap[0], &one, SIZE_MAX / 8 + 2, 1));
    expect_path(heap[0], SIZE_MAX, 1);
    CHECK_OK(gshmem_get128(&one, heap[0], SIZE_MAX / 16 + 2, 1));
    expect_path(heap[0], SIZE_MAX, 1);
}

static void test_contexts(void)
{
    struct gshmem_ctx other = world;
    const uintptr_t swapped[2] = {heap_peer[1], heap_peer[0]};

    other.heap.peer = swapped;
    other.n_pes = 2;
    CHECK_OK(gshmem_ctx_long_p(&other, &heap[0][0], 9, 0));
    CHECK_EQ(heap[1][0], 9);
    CHECK_EQ(path.calls, 0);
    CHECK_OK(gshmem_ctx_long_p(&other, &heap[0][0], 9, 2));
    CHECK(path.ctx == &other);
    expect_path(&heap[0][0], sizeof(long), 2);
    CHECK_OK(gshmem_ctx_long_p(GSHMEM_CTX_INVALID, &heap[0][0], 9, 0));
    CHECK(path.ctx == GSHMEM_CTX_INVALID);
    expect_path(&heap[0][0], sizeof(long), 0);
}

static void expect_atomic(int op, int type, uint64_t operand, uint64_t compare)
{
    CHECK_EQ(path.op, op);
    CHECK_EQ(path.type, type);
    CHECK_EQ(path.operand, operand);
    CHECK_EQ(path.compare, compare);
    CHECK_EQ(path.calls, 1);
    reset();
}

static void test_atomics_out_of_line(void)
{
    int *i = (int *)heap[0], got = 0;
    float *f = (float *)heap[0], fgot = 0;
    double *d = (double *)heap[0];

    CHECK_EQ(gshmem_int_atomic_fetch_add(i, -2, 2), -11);
    expect_atomic(GSHMEM_AMO_ADD, GSHMEM_TYPE_INT32, (uint64_t)-2, 0);
    CHECK_EQ(gshmem_int_atomic_compare_swap(i, 3, 4, 2), -11);
    expect_atomic(GSHMEM_AMO_COMPARE_SWAP, GSHMEM_TYPE_INT32, 4, 3);
    CHECK_OK(gshmem_int_atomic_compare_swap_nbi(&got, i, 3, 4, 2));
    expect_atomic(GSHMEM_AMO_COMPARE_SWAP, GSHMEM_TYPE_INT32, 4, 3);
    CHECK_EQ(got, -11);
    CHECK_OK(gshmem_uint_atomic_xor((unsigned *)i, 0xffffffffu, 2));
    expect_atomic(GSHMEM_AMO_XOR, GSHMEM_TYPE_UINT32, 0xffffffffu, 0);
    CHECK_OK(gshmem_float_atomic_add(f, 1.0f, 2));
    expect_atomic(GSHMEM_AMO_ADD, GSHMEM_TYPE_FLOAT, 0x3f800000, 0);
    CHECK_OK(gshmem_float_atomic_inc(f, 2));
    expect_atomic(GSHMEM_AMO_ADD, GSHMEM_TYPE_FLOAT, 0x3f800000, 0);
    CHECK_OK(gshmem_float_atomic_fetch_nbi(&fgot, f, 2));
    expect_atomic(GSHMEM_AMO_FETCH, GSHMEM_TYPE_FLOAT, 0, 0);
    CHECK(fgot != fgot); /* 0xfffffff5 is no number */
    CHECK(gshmem_double_atomic_swap(d, -2.0, 2) != 0);
    expect_atomic(GSHMEM_AMO_SWAP, GSHMEM_TYPE_DOUBLE, UINT64_C(0xc000000000000000), 0);

    /* Mapped, but not aligned: one access could not do it. */
    CHECK_OK(gshmem_long_atomic_set((long *)(void *)((char *)heap[0] + 4), 1, 1));
    expect_atomic(GSHMEM_AMO_SET, GSHMEM_TYPE_INT64, 1, 0);
    CHECK_EQ(heap[1][1], 0);
}

/* A failure is raised by what returns a value, and returned by the rest. */
static void test_failures(void)
{
    long value = 1, outside = 0;
    int got = 77;

    answer = GSHMEM_ERR_NOT_SYMMETRIC;
    CHECK_EQ(gshmem_long_p(&outside, 1, 1), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(gshmem_long_put(&outside, &value, 1, 1), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(gshmem_long_atomic_add(&outside, 1, 1), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(gshmem_int_atomic_fetch_inc_nbi(&got, (int *)&outside, 1), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(got, 77);
    CHECK_EQ(raised, 0);
    CHECK_EQ(gshmem_long_g(&outside, 1), 0);
    CHECK_EQ(raised, 1);
    CHECK_EQ(gshmem_long_atomic_fetch(&outside, 1), 0);
    CHECK_EQ(raised, 2);
    CHECK(gshmem_double_atomic_fetch_add((double *)&outside, 1, 1) == 0);
    CHECK_EQ(raised, 3);
    reset();
}

int main(void)
{
    for (int pe = 0; pe < 2; pe++) {
        heap_peer[pe] = (uintptr_t)heap[pe];
        data_peer[pe] = (uintptr_t)data[pe];
    }
    world = (struct gshmem_ctx){
        .heap = {(uintptr_t)heap[0], sizeof heap[0], heap_peer},
        .data = {(uintptr_t)data[0], sizeof data[0], data_peer},
        .n_pes = 3,
    };
    test_mapped();
    memset(heap, 0, sizeof heap);
    test_bounds();
    test_overflow();
    test_contexts();
    memset(heap, 0, sizeof heap);
    test_atomics_out_of_line();
    test_failures();
    return 0;
}
