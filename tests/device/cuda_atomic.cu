/* libcu++'s atomics: what each operation returns and leaves, on objects and references, in kernels and on the host; that
 * none is lost; messages and locks that the orders make safe. nvcc compiles it with NVIDIA's own libcu++. */
#include "device.h"

#include <limits.h>
#include <sys/mman.h>

#include <cuda/atomic>
#include <cuda/std/atomic>

#if defined(__NVCC__) == defined(GSHMEM_HOST_DEVICE)
#error "nvcc has to take NVIDIA's headers, and gshmemcc ours"
#endif

enum { BLOCKS = 16, THREADS = 96, ALL = BLOCKS * THREADS };

/* --- One of each --- */

template <class Atomic, class T> __host__ __device__ static void whole_numbers(Atomic &&a, T *old)
{
    const auto order = cuda::memory_order_acq_rel;
    T expected = T(9);

    a.store(T(10), cuda::memory_order_release);
    old[0] = a.fetch_add(T(5), cuda::memory_order_relaxed);     /* 10, 15 */
    old[1] = a.fetch_sub(T(3));                                 /* 15, 12 */
    old[2] = a.fetch_and(T(9), order);                          /* 12, 8 */
    old[3] = a.fetch_or(T(3), order);                           /* 8, 11 */
    old[4] = a.fetch_xor(T(6), order);                          /* 11, 13 */
    old[5] = a.fetch_min(T(20), order);                         /* 13, 13 */
    old[6] = a.fetch_min(T(7), order);                          /* 13, 7 */
    old[7] = a.fetch_max(T(5), order);                          /* 7, 7 */
    old[8] = a.fetch_max(T(30), order);                         /* 7, 30 */
    old[9] = a.exchange(T(31), cuda::memory_order_acquire);     /* 30, 31 */
    old[10] = a.compare_exchange_strong(expected, T(1), order); /* no */
    old[11] = expected;                                         /* 31 */
    old[12] = a.compare_exchange_strong(expected, T(32), order, cuda::memory_order_relaxed);
    while (!a.compare_exchange_weak(expected, T(33)))
        continue; /* from 31, which becomes 32 */
    old[13] = expected;
    old[14] = a++;
    old[15] = ++a;
    old[16] = a--;
    old[17] = --a;
    old[18] = a += T(4);
    old[19] = a -= T(2);
    old[20] = a &= T(38);
    old[21] = a |= T(1);
    old[22] = a ^= T(2);
    a = T(50);
    old[23] = a;
    a.wait(T(51));
    a.notify_all();
    old[24] = a.load(cuda::memory_order_acquire);
}

static const int expected_whole[] = {10, 15, 12, 8, 11, 13, 13, 7, 7, 30, 0, 31, 1, 32, 33, 35, 35, 33, 37, 35, 34, 35, 33, 50, 50};
enum { WHOLE = sizeof expected_whole / sizeof expected_whole[0] };

template <class T> __global__ void whole_kernel(T *object, T *old)
{
    __shared__ cuda::atomic<T, cuda::thread_scope_block> shared;

    whole_numbers(cuda::atomic_ref<T, cuda::thread_scope_device>(*object), old);
    whole_numbers(shared, old + WHOLE);
}

template <class T> static void check_whole()
{
    T *object = shared_array<T>(1), *old = shared_array<T>(4 * WHOLE);
    cuda::atomic<T> own(T(1));

    static_assert(sizeof own == (sizeof(T) < 4 ? 4 : sizeof(T)) && alignof(cuda::atomic<T>) == sizeof own, "as NVIDIA's");
    CHECK_EQ(own.load(), 1);
    whole_kernel<<<1, 1>>>(object, old);
    CHECK_LAUNCH();
    whole_numbers(own, old + 2 * WHOLE);
    CHECK_EQ(*object, 50);
    whole_numbers(cuda::atomic_ref<T>(*object), old + 3 * WHOLE);
    for (int i = 0; i < 4 * WHOLE; i++)
        CHECK_EQ(old[i], expected_whole[i % WHOLE]);
    CHECK_CUDA(cudaFree(object));
    CHECK_CUDA(cudaFree(old));
}

/* At their limits numbers wrap; nothing overflows (the test -trap). */
template <class T> __host__ __device__ static int wraps(T least, T most)
{
    cuda::atomic<T> a(most);
    int right = 0;

    right += ++a == least;
    right += --a == most;
    right += (a += 1) == least;
    right += (a -= 1) == most;
    right += a++ == most && a.load() == least;
    right += a-- == least && a.load() == most;
    return right;
}

template <class T> __global__ void wraps_kernel(T least, T most, int *right)
{
    *right = wraps(least, most);
}

template <class T> static void check_limits(T least, T most)
{
    int *right = shared_array<int>(1);

    wraps_kernel<<<1, 1>>>(least, most, right);
    CHECK_LAUNCH();
    CHECK_EQ(*right, 6);
#ifdef GSHMEM_HOST_DEVICE
    CHECK_EQ(wraps(least, most), 6);
#endif
    CHECK_CUDA(cudaFree(right));
}

struct pair {
    float x, y;
};

struct others {
    double real, real_old[4];
    int array[8], *at, *at_old[3];
    alignas(8) pair both, both_old;
    bool flag[4], swapped;
};

__global__ void others_kernel(others *o)
{
    cuda::atomic_ref<double, cuda::thread_scope_device> real(o->real);
    const cuda::atomic_ref<int *, cuda::thread_scope_device> at(o->at);
    cuda::atomic_ref<pair, cuda::thread_scope_device> both(o->both);
    __shared__ cuda::std::atomic_flag flag;
    pair seen = both.load();

    real.store(1.5);
    o->real_old[0] = real.fetch_add(2.25);
    o->real_old[1] = real.fetch_sub(0.5);
    o->real_old[2] = real += 1;
    at.store(&o->array[1]);
    o->at_old[0] = at.fetch_add(5);
    o->at_old[1] = at.fetch_sub(2);
    o->at_old[2] = at.load();
    const pair next = {seen.x + 1, seen.y + 2};
    o->swapped = both.compare_exchange_strong(seen, next);
    o->both_old = both.exchange(pair{7, 8});
    flag.clear();
    o->flag[0] = flag.test_and_set();
    o->flag[1] = flag.test_and_set(cuda::std::memory_order_acquire);
    o->flag[2] = flag.test();
    flag.clear(cuda::std::memory_order_release);
    o->flag[3] = flag.test();
    cuda::std::atomic_thread_fence(cuda::std::memory_order_seq_cst);
}

static void check_others()
{
    others *o = shared_array<others>(1);

    o->both = pair{3, 4};
    others_kernel<<<1, 1>>>(o);
    CHECK_LAUNCH();
    CHECK_EQ((int)(o->real_old[0] * 100), 150);
    CHECK_EQ((int)(o->real_old[1] * 100), 375);
    CHECK_EQ((int)(o->real_old[2] * 100), 425);
    CHECK_EQ((int)(o->real * 100), 425);
    CHECK(o->at_old[0] == &o->array[1] && o->at_old[1] == &o->array[6] && o->at_old[2] == &o->array[4]);
    CHECK(o->swapped);
    CHECK(o->both_old.x == 4 && o->both_old.y == 6 && o->both.x == 7 && o->both.y == 8);
    CHECK(!o->flag[0] && o->flag[1] && o->flag[2] && !o->flag[3]);
    CHECK_CUDA(cudaFree(o));
}

/* --- By all threads at once --- */

struct counts {
    cuda::atomic<int, cuda::thread_scope_device> sum;
    cuda::atomic<unsigned long long, cuda::thread_scope_system> most;
    cuda::atomic<float, cuda::thread_scope_device> real;
    int plain, locked;
    cuda::atomic<unsigned, cuda::thread_scope_device> lock;
};

__global__ void all_at_once(counts *c)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    c->sum.fetch_add((int)i, cuda::memory_order_relaxed);
    c->most.fetch_max(i * 3ULL);
    c->real.fetch_add(1, cuda::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_device>(c->plain).fetch_sub(1, cuda::memory_order_relaxed);
    if (threadIdx.x % 32 == 0) {
        while (c->lock.exchange(1, cuda::memory_order_acquire) != 0)
            continue;
        c->locked++;
        c->lock.store(0, cuda::memory_order_release);
    }
}

static void check_all()
{
    counts *c = shared_array<counts>(1);

    all_at_once<<<BLOCKS, THREADS>>>(c);
    CHECK_LAUNCH();
    CHECK_EQ(c->sum.load(), ALL * (ALL - 1) / 2);
    CHECK_EQ(c->most.load(), (ALL - 1) * 3);
    CHECK_EQ((int)c->real.load(), ALL);
    CHECK_EQ(c->plain, -ALL);
    CHECK_EQ(c->locked, ALL / 32);
    CHECK_CUDA(cudaFree(c));
}

/* Blocks hand a plain value round; each waits in a loop for its turn, or in wait(), or by a fence. */
__global__ void hand_round(cuda::atomic<int, cuda::thread_scope_device> *turn, unsigned *value, int rounds)
{
    const int me = (int)blockIdx.x, n = (int)gridDim.x;

    if (threadIdx.x)
        return;
    for (int round = 0; round < rounds; round++) {
        const int mine = round * n + me;
        if (round % 3 == 0) {
            while (turn->load(cuda::memory_order_acquire) != mine)
                continue;
        } else if (round % 3 == 1) {
            for (int now; (now = turn->load(cuda::memory_order_acquire)) != mine;)
                turn->wait(now, cuda::memory_order_acquire);
        } else {
            while (turn->load(cuda::memory_order_relaxed) != mine)
                continue;
            cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        }
        *value = *value * 3 + (unsigned)mine;
        if (round % 3 == 2) {
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
            turn->store(mine + 1, cuda::memory_order_relaxed);
        } else {
            turn->store(mine + 1, cuda::memory_order_release);
        }
        turn->notify_all();
    }
}

static void check_round()
{
    typedef cuda::atomic<int, cuda::thread_scope_device> turn_of;
    const int blocks = 8, rounds = 30;
    turn_of *turn = shared_array<turn_of>(1);
    unsigned *value = shared_array<unsigned>(1);
    unsigned expected = 0;

    for (int i = 0; i < blocks * rounds; i++)
        expected = expected * 3 + (unsigned)i;
    hand_round<<<blocks, 32>>>(turn, value, rounds);
    CHECK_LAUNCH();
    CHECK_EQ(turn->load(), blocks * rounds);
    CHECK_EQ(*value, expected);
    CHECK_CUDA(cudaFree(turn));
    CHECK_CUDA(cudaFree(value));
}

/* What is expected may be another thread's as soon as the value has changed: it is not written. */
static void check_expected_stays()
{
    cuda::atomic<int> a(7);
    int *expected = (int *)mmap(NULL, sizeof *expected, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(expected != MAP_FAILED);
    *expected = 7;
    CHECK_EQ(mprotect(expected, sizeof *expected, PROT_READ), 0);
    CHECK(a.compare_exchange_strong(*expected, 8));
    CHECK_EQ(a.load(), 8);
    munmap(expected, sizeof *expected);
}

int main()
{
    check_expected_stays();
    check_whole<int>();
    check_whole<unsigned>();
    check_whole<long long>();
    check_whole<unsigned long long>();
    check_whole<signed char>();
    check_whole<unsigned short>();
    check_limits<int>(INT_MIN, INT_MAX);
    check_limits<long long>(LLONG_MIN, LLONG_MAX);
    check_limits<short>(SHRT_MIN, SHRT_MAX);
    check_limits<unsigned>(0, UINT_MAX);
    check_others();
    check_all();
    check_round();
    return 0;
}
