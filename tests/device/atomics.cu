/* Atomic operations: what each returns and leaves for one thread, and that none is lost when many
 * blocks update one location. */
#include "device.h"

#include <limits.h>

enum { BLOCKS = 16, THREADS = 96, ALL = BLOCKS * THREADS };

template <class T> __global__ void one_of_each(T *at, T *old)
{
    old[0] = atomicAdd(&at[0], T(5));
    old[1] = atomicExch(&at[1], T(6));
    old[2] = atomicMin(&at[2], T(7));
    old[3] = atomicMax(&at[3], T(8));
    old[4] = atomicAnd(&at[4], T(12));
    old[5] = atomicOr(&at[5], T(12));
    old[6] = atomicXor(&at[6], T(12));
    old[7] = atomicCAS(&at[7], T(10), T(77));
    old[8] = atomicCAS(&at[8], T(11), T(77));
}

template <class T> static void check_each()
{
    T *at = shared_array<T>(9), *old = shared_array<T>(9);
    static const int expected[] = {15, 6, 7, 10, 8, 14, 6, 77, 10};

    for (int i = 0; i < 9; i++)
        at[i] = T(10);
    one_of_each<<<1, 1>>>(at, old);
    CHECK_LAUNCH();
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(at[i], expected[i]);
        CHECK_EQ(old[i], 10);
    }
    CHECK_CUDA(cudaFree(at));
    CHECK_CUDA(cudaFree(old));
}

__global__ void signs(int *s, unsigned *u, long long *l, unsigned long long *ul)
{
    atomicMin(&s[0], -3); /* -3 */
    atomicMax(&s[1], -3); /* stays 10 */
    atomicSub(&s[2], 11); /* -1 */
    atomicMin(&u[0], 0xfffffffdu); /* stays 10 */
    atomicMax(&u[1], 0xfffffffdu);
    atomicSub(&u[2], 11u); /* wraps */
    atomicMin(&l[0], -3LL);
    atomicMax(&l[1], -3LL);
    atomicMin(&ul[0], ~0ULL - 2);
    atomicMax(&ul[1], ~0ULL - 2);
}

static void check_signs()
{
    int *s = shared_array<int>(3);
    unsigned *u = shared_array<unsigned>(3);
    long long *l = shared_array<long long>(3);
    unsigned long long *ul = shared_array<unsigned long long>(3);

    for (int i = 0; i < 3; i++)
        s[i] = 10, u[i] = 10, l[i] = 10, ul[i] = 10;
    signs<<<1, 1>>>(s, u, l, ul);
    CHECK_LAUNCH();
    CHECK(s[0] == -3 && s[1] == 10 && s[2] == -1);
    CHECK(u[0] == 10 && u[1] == 0xfffffffdu && u[2] == 0xffffffffu);
    CHECK(l[0] == -3 && l[1] == 10);
    CHECK(ul[0] == 10 && ul[1] == ~0ULL - 2);
    CHECK_CUDA(cudaFree(s));
    CHECK_CUDA(cudaFree(u));
    CHECK_CUDA(cudaFree(l));
    CHECK_CUDA(cudaFree(ul));
}

struct totals {
    int add, block, system, sub, most, least;
    unsigned long long wide;
    unsigned inc, dec, wrapped, ors, swaps;
    float single;
    double twice;
    int by_compare;
};

__global__ void many(totals *t, unsigned *taken)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    atomicAdd(&t->add, 1);
    atomicAdd_block(&t->block, 0);
    atomicAdd_system(&t->system, 2);
    atomicSub(&t->sub, 1);
    atomicMax(&t->most, i);
    atomicMin(&t->least, -i);
    atomicAdd(&t->wide, 1ULL << 33);
    taken[atomicInc(&t->inc, UINT_MAX)]++; /* a number for each */
    atomicDec(&t->dec, UINT_MAX);
    if (atomicInc(&t->wrapped, 6) > 6)
        atomicExch(&t->swaps, 1u);
    atomicOr(&t->ors, 1u << (i % 32));
    atomicAdd(&t->single, 1.0f);
    atomicAdd(&t->twice, 0.5);
    for (int old = t->by_compare, seen;; old = seen) {
        seen = atomicCAS(&t->by_compare, old, old + 3);
        if (seen == old)
            break;
    }
}

int main()
{
    totals *t = shared_array<totals>(1);
    unsigned *taken = shared_array<unsigned>(ALL);

    check_each<int>();
    check_each<unsigned>();
    check_each<unsigned long long>();
    check_signs();

    t->dec = ALL;
    many<<<BLOCKS, THREADS>>>(t, taken);
    CHECK_LAUNCH();
    CHECK_EQ(t->add, ALL);
    CHECK_EQ(t->block, 0);
    CHECK_EQ(t->system, 2 * ALL);
    CHECK_EQ(t->sub, -ALL);
    CHECK_EQ(t->most, ALL - 1);
    CHECK_EQ(t->least, 1 - ALL);
    CHECK_EQ(t->wide >> 33, ALL);
    CHECK_EQ(t->inc, ALL);
    CHECK_EQ(t->dec, 0);
    CHECK_EQ(t->wrapped, ALL % 7);
    CHECK_EQ(t->swaps, 0);
    CHECK_EQ(t->ors, 0xffffffff);
    CHECK(t->single == (float)ALL);
    CHECK(t->twice == ALL * 0.5);
    CHECK_EQ(t->by_compare, 3 * ALL);
    for (int i = 0; i < ALL; i++)
        CHECK_EQ(taken[i], 1);
    CHECK_CUDA(cudaFree(taken));
    CHECK_CUDA(cudaFree(t));
    return 0;
}
