/* Memory that the program has made of its (simulated) GPU, as part of the symmetric heap: peers reach it,
 * on this host and on others, both its addresses show the same bytes, it goes and comes again, and stays
 * the program's. With "faults" the driver refuses one step on one PE: all PEs are told, nothing is left
 * mapped, and the next try works. With "ipc" it is refused everywhere. */
#include <dlfcn.h>

#include "gshmem.h"
#include "gpu.h"

enum { MIB = 1 << 20, PART = 2 * MIB, WORDS = 1000 };

static int me, n, left, right, handle_type = CUDA_HANDLE_DESCRIPTOR;
static bool one_gpu;

/* ---- The program's memory ---- */

struct buffer {
    char *at;
    size_t bytes;
    int pieces;
    size_t piece[4];
};

static struct cuda_allocation what(int type, cuda_gpu on)
{
    return (struct cuda_allocation){.type = CUDA_ALLOCATION_PINNED,
                                    .handle_types = type,
                                    .location = {CUDA_LOCATION_GPU, on}};
}

static void map_piece(cuda_address at, size_t bytes, int type, cuda_gpu on)
{
    const struct cuda_allocation allocation = what(type, on);
    const struct cuda_access access = {{CUDA_LOCATION_GPU, on}, CUDA_READ_WRITE};
    cuda_piece piece;

    CHECK_EQ(driver.create(&piece, bytes, &allocation, 0), CUDA_OK);
    CHECK_EQ(driver.map(at, bytes, 0, piece, 0), CUDA_OK);
    CHECK_EQ(driver.set_access(at, bytes, &access, 1), CUDA_OK);
    CHECK_EQ(driver.release(piece), CUDA_OK);
}

/* Of so many pieces, each of so many parts; 0 ends them. */
static struct buffer make_of(int type, cuda_gpu on, const size_t parts[4])
{
    struct buffer b = {.bytes = 0};
    cuda_address at;

    for (int i = 0; i < 4 && parts[i]; i++) {
        b.piece[b.pieces++] = parts[i] * PART;
        b.bytes += parts[i] * PART;
    }
    CHECK_EQ(driver.reserve(&at, b.bytes, 0, 0, 0), CUDA_OK);
    b.at = (char *)(uintptr_t)at;
    for (int i = 0; i < b.pieces; at += b.piece[i++])
        map_piece(at, b.piece[i], type, on);
    return b;
}

#define MAKE(...) make_of(handle_type, gpu, (const size_t[4]){__VA_ARGS__})

static void release(struct buffer *b)
{
    cuda_address at = (cuda_address)(uintptr_t)b->at;

    for (int i = 0; i < b->pieces; at += b->piece[i++])
        CHECK_EQ(driver.unmap(at, b->piece[i]), CUDA_OK);
    CHECK_EQ(driver.unreserve((cuda_address)(uintptr_t)b->at, b->bytes), CUDA_OK);
}

/* What the GPU's copies find at the program's own address. */
static void look(void *to, const char *at, size_t bytes)
{
    cuda_stream stream;

    CHECK_EQ(driver.stream_create(&stream, CUDA_STREAM_NON_BLOCKING), CUDA_OK);
    CHECK_EQ(driver.copy_async((uintptr_t)to, (uintptr_t)at, bytes, stream), CUDA_OK);
    CHECK_EQ(driver.stream_wait(stream), CUDA_OK);
    CHECK_EQ(driver.stream_destroy(stream), CUDA_OK);
}

/* ---- What peers do with it ---- */

static long value(int pe, int round, int i)
{
    return pe * 100000 + round * 10000 + i;
}

static void check_words(const long *words, int pe, int round)
{
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != value(pe, round, i))
            CHECK_FAIL("word %d is %ld, expected %ld of PE %d", i, words[i], value(pe, round, i), pe);
    }
}

/* At a place of it: the right neighbour's is written, and found by all. */
static void use(char *shared, const char *own, int round)
{
    long words[WORDS], got[WORDS];

    for (int i = 0; i < WORDS; i++)
        words[i] = value(me, round, i);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_putmem(shared, words, sizeof words, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(got, shared, sizeof got, me));
    check_words(got, left, round);
    CHECK_OK(gshmem_getmem(got, shared, sizeof got, right));
    check_words(got, me, round);
    look(got, own, sizeof got);
    check_words(got, left, round);
    CHECK_OK(gshmem_barrier_all());
}

/* All over it, where its pieces meet on some PE too. */
static void use_all(char *shared, const struct buffer *b, int round)
{
    for (size_t at = 0; at < b->bytes; at += PART) {
        use(shared + at, b->at + at, round);
        if (at)
            use(shared + at - 4096, b->at + at - 4096, round + 1);
    }
    use(shared + b->bytes - WORDS * sizeof(long), b->at + b->bytes - WORDS * sizeof(long), round + 2);
}

static void *check_registered(struct buffer *b)
{
    char *shared = gshmem_buffer_register_symmetric(b->at, b->bytes, 0);

    CHECK(shared && shared != b->at);
    CHECK(gshmem_ptr(shared, me) == shared);
    CHECK(gshmem_addr_accessible(shared + b->bytes - 1, right));
    return shared;
}

static void updates(long *shared, const char *own)
{
    long found = 0;

    CHECK_OK(gshmem_long_p(shared, 0, me));
    CHECK_OK(gshmem_barrier_all());
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_long_atomic_add(shared, pe + 1, pe));
    CHECK_OK(gshmem_barrier_all());
    look(&found, own, sizeof found);
    CHECK_EQ(found, (long)n * (me + 1));
    CHECK_OK(gshmem_barrier_all());
}

/* One piece each, and pieces that PEs have cut differently. */
static void one_by_one(bool kernels)
{
    struct buffer one = MAKE(1), cut = me % 2 ? MAKE(1, 2, 1) : MAKE(3, 1);
    char *shared = check_registered(&one), *other;

    use_all(shared, &one, 1);
    other = check_registered(&cut);
    CHECK(other >= shared + one.bytes || other + cut.bytes <= shared);
    use_all(other, &cut, 2);
    use(shared, one.at, 3);
    if (kernels)
        updates((long *)(void *)(other + cut.bytes) - 1, cut.at + cut.bytes - sizeof(long));
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, one.bytes));
    use_all(other, &cut, 4);
    CHECK(check_registered(&one) == shared); /* best fit */
    use_all(shared, &one, 5);
    CHECK_OK(gshmem_buffer_unregister_symmetric(other, cut.bytes));
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, one.bytes));
    release(&cut);
    release(&one);
}

/* Where the program prefers it, as far as that is free and begins at a multiple of 16 MiB. */
static void preferred(void)
{
    enum { STEP = 16 * MIB };
    struct buffer one = MAKE(1, 1), two = MAKE(1);
    char *first = check_registered(&one), *shared, *other;

    CHECK_OK(gshmem_buffer_unregister_symmetric(first, one.bytes));
    shared = gshmem_buffer_register_symmetric_at(one.at, one.bytes, first + 2 * STEP, 0);
    CHECK(shared == first + 2 * STEP);
    use_all(shared, &one, 1);
    char *const no[] = {shared, shared + PART, first + STEP + PART, first - STEP, two.at};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        other = gshmem_buffer_register_symmetric_at(two.at, two.bytes, no[i], 0);
        CHECK(other == first); /* best fit */
        use_all(other, &two, 2);
        CHECK_OK(gshmem_buffer_unregister_symmetric(other, two.bytes));
    }
    other = gshmem_buffer_register_symmetric_at(two.at, two.bytes, first + STEP, 0);
    CHECK(other == first + STEP);
    use_all(other, &two, 3);
    use_all(shared, &one, 4);
    CHECK_OK(gshmem_buffer_unregister_symmetric(other, two.bytes));
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, one.bytes));
    release(&one);
    release(&two);
}

/* The heap grows and shrinks beside it. */
static void beside_the_heap(void)
{
    struct buffer b = MAKE(2);
    char *shared = check_registered(&b), *object = gshmem_malloc(100 * MIB);

    CHECK(object && shared > object);
    use(object + 99 * MIB, object + 99 * MIB, 1);
    use_all(shared, &b, 2);
    CHECK_OK(gshmem_free(object));
    use_all(shared, &b, 3);
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, b.bytes));
    release(&b);
}

/* ---- Mistakes ---- */

static void refused(void *at, size_t bytes, gshmem_status_t status, const char *part)
{
    const char *text = "";

    CHECK(!gshmem_buffer_register_symmetric(at, bytes, 0));
    CHECK_EQ(gshmem_last_error(&text), status);
    if (me == 0)
        CHECK_HAS(text, part);
}

static void mistakes(void)
{
    struct buffer b = MAKE(2, 1), bare = make_of(CUDA_HANDLE_NONE, gpu, (const size_t[4]){1});
    long *object = gshmem_malloc(64), got;
    cuda_address block;
    const char *text;

    CHECK(object);
    CHECK_EQ(driver.allocate(&block, PART), CUDA_OK);
    refused(&got, sizeof got, GSHMEM_ERR_ARGUMENT, "are not all memory of a GPU: what the heap takes is");
    refused(object, 64, GSHMEM_ERR_ARGUMENT, "overlap the symmetric heap");
    refused((void *)(uintptr_t)block, PART, GSHMEM_ERR_DEVICE, "was not made by cuMemCreate");
    refused(bare.at, bare.bytes, GSHMEM_ERR_ARGUMENT, "among the requestedHandleTypes");
    refused(b.at + 4096, PART, GSHMEM_ERR_ARGUMENT, "is 4096 B inside the 4194304 B that are mapped at");
    refused(b.at, PART, GSHMEM_ERR_ARGUMENT, "the buffer ends 2097152 B into the 4194304 B");
    refused(b.at, 2 * PART + 4096, GSHMEM_ERR_ARGUMENT, "the buffer ends 4096 B into the 2097152 B");
    if (!one_gpu) {
        struct buffer far = make_of(handle_type, 1 - gpu, (const size_t[4]){1});
        refused(far.at, far.bytes, GSHMEM_ERR_ARGUMENT, "and this PE's GPU is");
        release(&far);
    }
    if (n > 1) {
        CHECK(!gshmem_buffer_register_symmetric(b.at, me == 1 ? b.bytes : 2 * PART, 0));
        CHECK_EQ(gshmem_last_error(&text), GSHMEM_ERR_MISMATCH);
        CHECK_HAS(text, "PE 1 asks for 6291456 B, PE 0 asks for 4194304 B");
        CHECK(!gshmem_buffer_register_symmetric(me == 1 ? bare.at : b.at, PART * 2, 0));
        CHECK(gshmem_last_error(&text) != GSHMEM_OK);
    }

    char *shared = check_registered(&b);
    refused(b.at + 2 * PART, PART, GSHMEM_ERR_ARGUMENT, "are registered already");
    CHECK_EQ(gshmem_free(shared), GSHMEM_ERR_NOT_SYMMETRIC);
    CHECK_EQ(gshmem_buffer_unregister_symmetric(shared, PART), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_buffer_unregister_symmetric(shared + PART, PART), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(gshmem_buffer_unregister_symmetric(b.at, b.bytes), GSHMEM_ERR_ARGUMENT);
    /* beyond it are addresses, and no memory */
    CHECK_FAILS(gshmem_long_put((long *)(void *)(shared + b.bytes), &got, 1, right),
                GSHMEM_ERR_NOT_SYMMETRIC, "it is not all in a buffer that");
    CHECK_FAILS(gshmem_long_put((long *)(void *)(shared + b.bytes) - 1, (long[2]){1, 2}, 2, right),
                GSHMEM_ERR_NOT_SYMMETRIC, "it is not all in a buffer that");
    use_all(shared, &b, 1);
    CHECK_OK(gshmem_buffer_unregister_symmetric(shared, b.bytes));
    CHECK_EQ(gshmem_buffer_unregister_symmetric(shared, b.bytes), GSHMEM_ERR_ARGUMENT);
    release(&b);
    release(&bare);
    CHECK_EQ(driver.free(block), CUDA_OK);
    CHECK_OK(gshmem_free(object));
}

/* ---- Faults ---- */

static void faults(void)
{
    static const struct {
        const char *call;
        long nth;
        int result;
        const char *text;
    } fault[] = {
        {"cuMemRetainAllocationHandle", 1, CUDA_INVALID_VALUE, "was not made by cuMemCreate"},
        {"cuMemRetainAllocationHandle", 2, CUDA_OUT_OF_MEMORY, "was not made by cuMemCreate"},
        {"cuMemGetAllocationPropertiesFromHandle", 1, CUDA_INVALID_VALUE, "asking what the memory"},
        {"cuMemExportToShareableHandle", 1, CUDA_NOT_PERMITTED, "known to other "},
        {"cuMemExportToShareableHandle", 2, CUDA_NOT_PERMITTED, "known to other "},
        {"cuMemMap", 1, CUDA_OUT_OF_MEMORY, "into this PE's heap: out of memory"},
        {"cuMemSetAccess", 1, CUDA_PEER_ACCESS_UNSUPPORTED, "letting GPU"},
        {"cuMemImportFromShareableHandle", 1, CUDA_INVALID_VALUE, "that a PE lends to its heap by"},
        {"cuMemMap", 2, CUDA_OUT_OF_MEMORY, "heap: out of memory"},
        {"cuMemMap", 3, CUDA_OUT_OF_MEMORY, "heap: out of memory"},
        {"cuMemSetAccess", 3, CUDA_PEER_ACCESS_UNSUPPORTED, "letting GPU"},
    };
    void (*sim_fail)(const char *call, long nth, int result);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    struct buffer b = MAKE(1, 1);
    const char *text;

    CHECK(library);
    *(void **)&sim_fail = dlsym(library, "sim_fail");
    CHECK(sim_fail);
    for (int i = 0; i < (int)(sizeof fault / sizeof fault[0]); i++) {
        if (me == n - 1)
            sim_fail(fault[i].call, fault[i].nth, fault[i].result);
        void *shared = gshmem_buffer_register_symmetric(b.at, b.bytes, 0);
        if (shared)
            CHECK_FAIL("it went well, though %s failed", fault[i].call);
        CHECK(gshmem_last_error(&text) != GSHMEM_OK);
        if (me == n - 1)
            CHECK_HAS(text, fault[i].text);
        sim_fail("", 0, 0);
        shared = check_registered(&b);
        use_all(shared, &b, i);
        CHECK_OK(gshmem_buffer_unregister_symmetric(shared, b.bytes));
    }
    release(&b);
    dlclose(library);
}

static void no_such_thing(void)
{
    cuda_address block;

    CHECK_EQ(driver.allocate(&block, PART), CUDA_OK);
    refused((void *)(uintptr_t)block, PART, GSHMEM_ERR_UNSUPPORTED, "have virtual memory management");
    CHECK_EQ(driver.free(block), CUDA_OK);
}

/* A PE may put as soon as its own call returns: the others know the buffer by then, though they are in theirs. */
static void at_once(void)
{
    enum { ROUNDS = 30 };
    const int across = (me + n / 2) % n; /* on another host, where there are two */
    struct buffer b = MAKE(1);

    for (int i = 0; i < ROUNDS; i++) {
        char *shared = gshmem_buffer_register_symmetric(b.at, b.bytes, 0);
        long word = value(me, i, 0), got = 0;

        CHECK(shared);
        CHECK_OK(gshmem_putmem(shared + (size_t)me * sizeof word, &word, sizeof word, across));
        CHECK_OK(gshmem_barrier_all());
        CHECK_OK(gshmem_getmem(&got, shared + (size_t)((me + n - n / 2) % n) * sizeof got, sizeof got, me));
        CHECK_EQ(got, value((me + n - n / 2) % n, i, 0));
        CHECK_OK(gshmem_buffer_unregister_symmetric(shared, b.bytes));
    }
    release(&b);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int gpus;

    if (strstr(how, "domain"))
        handle_type = CUDA_HANDLE_DESCRIPTOR | CUDA_HANDLE_FABRIC;
    if (strstr(how, "fabric"))
        handle_type = CUDA_HANDLE_FABRIC;
    for (int job = 0; job < 2; job++) {
        CHECK_OK(gshmem_init());
        open_gpu();
        CHECK_EQ(driver.gpu_count(&gpus), CUDA_OK);
        one_gpu = gpus == 1;
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        left = (me + n - 1) % n;
        right = (me + 1) % n;
        if (strstr(how, "ipc")) {
            no_such_thing();
            CHECK_OK(gshmem_finalize());
        } else if (strstr(how, "faults")) {
            faults();
            at_once();
            CHECK_OK(gshmem_finalize());
        } else {
            one_by_one(strstr(how, "kernels"));
            preferred();
            beside_the_heap();
            mistakes();
            at_once();
            struct buffer left_over = MAKE(1, 1);
            use_all(check_registered(&left_over), &left_over, 1);
            CHECK_OK(gshmem_finalize());
            CHECK_EQ(driver.context_push(context), CUDA_OK);
            release(&left_over);
        }
        close_gpu();
    }
    return 0;
}
