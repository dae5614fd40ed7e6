/* Buffers of the program's own: what may be registered, each mistake and its text, and that what is
 * registered is used as any other memory is. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "gshmem.h"
#include "../check.h"

enum { PAGE = 4096, BUFFERS = 100, THREADS = 4 };

static char variable[PAGE];

static void mistakes(void)
{
    char *heap = gshmem_malloc(PAGE), *gone, buffer[256];

    CHECK(heap);
    CHECK_FAILS(gshmem_buffer_register(NULL, 8), GSHMEM_ERR_ARGUMENT, "are no buffer");
    CHECK_FAILS(gshmem_buffer_register(buffer, 0), GSHMEM_ERR_ARGUMENT, "0 B at");
    CHECK_FAILS(gshmem_buffer_register(buffer, SIZE_MAX - 8), GSHMEM_ERR_ARGUMENT, "are no buffer");
    CHECK_FAILS(gshmem_buffer_register(heap + 8, 8), GSHMEM_ERR_ARGUMENT, "the symmetric heap");
    CHECK_FAILS(gshmem_buffer_unregister(buffer), GSHMEM_ERR_ARGUMENT, "(0 are elsewhere)");
    gone = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED && munmap(gone + 2 * PAGE, PAGE) == 0);
    CHECK_FAILS(gshmem_buffer_register(gone, 4 * PAGE), GSHMEM_ERR_ARGUMENT, "no memory at");
    CHECK_FAILS(gshmem_buffer_register(gone + 2 * PAGE, 1), GSHMEM_ERR_ARGUMENT, "no memory at");
    CHECK_OK(gshmem_buffer_register(gone, 2 * PAGE));
    CHECK_OK(gshmem_buffer_unregister(gone));
    munmap(gone, 2 * PAGE); /* not the hole: by now it may hold memory of another */
    munmap(gone + 3 * PAGE, PAGE);

    CHECK_OK(gshmem_buffer_register(buffer + 64, 64));
    CHECK_FAILS(gshmem_buffer_register(buffer + 64, 64), GSHMEM_ERR_ARGUMENT, "registered already");
    CHECK_FAILS(gshmem_buffer_register(buffer, 256), GSHMEM_ERR_ARGUMENT, "overlap the 64 B at");
    CHECK_FAILS(gshmem_buffer_register(buffer, 65), GSHMEM_ERR_ARGUMENT, "unregister those first");
    CHECK_FAILS(gshmem_buffer_register(buffer + 127, 2), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_FAILS(gshmem_buffer_register(buffer + 80, 2), GSHMEM_ERR_ARGUMENT, "overlap");
    CHECK_OK(gshmem_buffer_register(buffer + 128, 64)); /* side by side is well */
    CHECK_OK(gshmem_buffer_register(buffer, 64));
    CHECK_FAILS(gshmem_buffer_unregister(buffer + 65), GSHMEM_ERR_ARGUMENT,
                "1 bytes inside the buffer of 64 B");
    CHECK_FAILS(gshmem_buffer_unregister(buffer + 192), GSHMEM_ERR_ARGUMENT, "(3 are elsewhere)");
    CHECK_OK(gshmem_buffer_unregister(buffer + 64));
    CHECK_FAILS(gshmem_buffer_unregister(buffer + 64), GSHMEM_ERR_ARGUMENT,
                "no buffer is registered");
    CHECK_OK(gshmem_buffer_register(buffer + 64, 64));
    CHECK_OK(gshmem_buffer_unregister_all());
    CHECK_OK(gshmem_buffer_unregister_all());
    CHECK_FAILS(gshmem_buffer_unregister(buffer), GSHMEM_ERR_ARGUMENT, "(0 are elsewhere)");
    CHECK_OK(gshmem_free(heap));
}

/* Many, in an order that is not theirs. */
static void many(void)
{
    char *block = malloc((size_t)BUFFERS * PAGE);

    CHECK(block);
    for (int i = 0; i < BUFFERS; i++)
        CHECK_OK(gshmem_buffer_register(block + i * 37 % BUFFERS * PAGE, PAGE));
    for (int i = 0; i < BUFFERS; i++)
        CHECK_FAILS(gshmem_buffer_register(block + i * PAGE + 1, 1), GSHMEM_ERR_ARGUMENT,
                    "overlap");
    for (int i = 0; i < BUFFERS; i++)
        CHECK_OK(gshmem_buffer_unregister(block + i * 61 % BUFFERS * PAGE));
    free(block);
}

static void use(int me, int n)
{
    long *object = gshmem_malloc(PAGE), *mine = malloc(PAGE);
    int right = (me + 1) % n, left = (me + n - 1) % n;

    CHECK(object && mine);
    CHECK_OK(gshmem_buffer_register(mine, PAGE));
    CHECK_OK(gshmem_buffer_register(variable, sizeof variable));
    for (int i = 0; i < PAGE / 8; i++)
        mine[i] = me * 1000 + i;
    CHECK_OK(gshmem_putmem(object, mine, PAGE, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(variable, object, PAGE, me));
    for (int i = 0; i < PAGE / 8; i++)
        CHECK_EQ(((long *)variable)[i], left * 1000 + i);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_buffer_unregister(mine));
    free(mine);
    CHECK_OK(gshmem_free(object));
}

static void *register_in_thread(void *block)
{
    for (int round = 0; round < 200; round++) {
        CHECK_OK(gshmem_buffer_register(block, PAGE));
        CHECK_OK(gshmem_buffer_unregister(block));
    }
    return NULL;
}

static void by_threads(void)
{
    char *block = malloc(THREADS * PAGE);
    pthread_t thread[THREADS];

    CHECK(block);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, register_in_thread, block + i * PAGE), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    free(block);
}

int main(void)
{
    int provided;

    setenv("GSHMEM_LOG", "none", 1);
    CHECK_FAILS(gshmem_buffer_register(variable, 8), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_buffer_unregister(variable), GSHMEM_ERR_STATE, "gshmem_init");
    CHECK_FAILS(gshmem_buffer_unregister_all(), GSHMEM_ERR_STATE, "gshmem_init");
    for (int job = 0; job < 2; job++) { /* what the first has left is not the second's */
        CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
        mistakes();
        many();
        by_threads();
        use(gshmem_my_pe(), gshmem_n_pes());
        CHECK_OK(gshmem_finalize());
    }
    return 0;
}
