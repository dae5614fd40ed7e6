/* Memory of the program's own, registered as symmetric, reached from kernels: puts, gets, atomics, signals
 * and pointers, to the PE on the right. */
#include <stdlib.h>

#include "check.h"

enum { PAGE = 4096, N = PAGE / sizeof(double) };

struct buffer { /* on PAGE bytes each */
    double source[N];
    double put[N];
    double got[N];
    struct {
        unsigned long long counter, fetched;
        uint64_t signal, seen;
        int direct, known; /* whether and that the left could */
        char unused[PAGE - 40];
    } words;
};

__global__ void use(buffer *b, int mype, int right)
{
    nvshmemx_double_put_nbi_block(b->put, b->source, N, right);
    nvshmemx_double_get_block(b->got, b->source, N, right);
    if (threadIdx.x == 0) {
        nvshmem_quiet();
        b->words.fetched = nvshmem_ulonglong_atomic_fetch_add(&b->words.counter, 5, right);
        int *there = (int *)nvshmem_ptr(&b->words.direct, right);
        nvshmem_int_p(&b->words.known, there != NULL, right);
        if (there)
            *there = mype + 1;
        nvshmemx_signal_op(&b->words.signal, 3, NVSHMEM_SIGNAL_SET, right);
        b->words.seen = nvshmem_signal_wait_until(&b->words.signal, NVSHMEM_CMP_EQ, 3);
    }
}

int main()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    const int right = (mype + 1) % npes, left = (mype + npes - 1) % npes;
    buffer *own = (buffer *)aligned_alloc(PAGE, sizeof *own);

    CHECK(own && sizeof *own % PAGE == 0);
    buffer *earlier = NULL;

    for (int round = 0; round < 3; round++) {
        memset((void *)own, 0, sizeof *own);
        for (int i = 0; i < N; i++)
            own->source[i] = mype * 1000 + i + round;
        /* the third time at the address that the first has returned, where another has been meanwhile */
        buffer *b = (buffer *)(round < 2 ? nvshmemx_buffer_register_symmetric(own, sizeof *own, 0)
                                         : nvshmemx_buffer_register_symmetric_at_preferred_address(own, sizeof *own,
                                                                                                   earlier, 0));
        CHECK(b);
        if (round == 0)
            earlier = b;
        CHECK(round == 1 || b == earlier);
        nvshmem_barrier_all();
        use<<<1, 32>>>(b, mype, right);
        CHECK_LAUNCH();
        nvshmem_barrier_all();
        for (int i = 0; i < N; i++) {
            CHECK_EQ(own->put[i], left * 1000 + i + round);
            CHECK_EQ(own->got[i], right * 1000 + i + round);
        }
        CHECK_EQ(own->words.counter, 5);
        CHECK_EQ(own->words.fetched, 0);
        CHECK_EQ(own->words.seen, 3);
        CHECK_EQ(own->words.direct, own->words.known ? left + 1 : 0);
        if (nvshmem_ptr(b, left) == NULL)
            CHECK_EQ(own->words.known, 0);
        CHECK_EQ(nvshmemx_buffer_unregister_symmetric(b, sizeof *own), 0);
        CHECK_EQ(own->words.counter, 5);
        if (round == 0) /* takes the place, so that the second is elsewhere */
            CHECK(nvshmem_align(PAGE, sizeof *own) == earlier);
        if (round == 1) {
            CHECK(b != earlier);
            nvshmem_free(earlier);
        }
    }
    free(own);
    nvshmem_finalize();
    return 0;
}
