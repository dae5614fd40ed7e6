/* The copies that put and get are made of: both sides at every alignment, sizes around and far from
 * those of words, by a thread, a warp and a block of several sizes; against a copy byte by byte,
 * with guards around. Compiled with -DGSHMEM_COPY_WORDS the host device copies as a GPU does. */
#include "device.h"
#include "gshmem_device.h"

enum { AROUND = 32, ROOM = 8192 + 2 * AROUND, GUARD = 0xee };

/* Differs for neighbours, and for bytes that are a word or a line apart. */
static __host__ __device__ unsigned char source_byte(size_t i)
{
    return (unsigned char)(i * 7 + (i >> 4) * 3 + (i >> 8) + 1);
}

template <int scope>
__global__ void copies(unsigned char *to, const unsigned char *from, size_t bytes, unsigned *wrong)
{
    for (size_t pair = 0; pair < 256; pair++) {
        size_t at = AROUND + pair / 16, off = AROUND + pair % 16, end = at + bytes;

        for (size_t i = threadIdx.x; i < end + AROUND; i += blockDim.x)
            to[i] = GUARD;
        __syncthreads();
        if (scope == GSHMEM_SCOPE_BLOCK || threadIdx.x < (scope == GSHMEM_SCOPE_WARP ? 32 : 1))
            gshmem_kernel_copy<scope>(to + at, from + off, bytes);
        __syncthreads();
        for (size_t i = threadIdx.x; i < end + AROUND; i += blockDim.x) {
            bool copied = i >= at && i < end;
            unsigned char expected = copied ? source_byte(i - at + off) : (unsigned char)GUARD;
            if (to[i] != expected && atomicAdd(&wrong[0], 1) == 0) {
                wrong[1] = (unsigned)pair;
                wrong[2] = (unsigned)i - (unsigned)at;
                wrong[3] = to[i];
            }
        }
        __syncthreads();
    }
}

/* Objects of 2, 4 and 8 bytes that others poll: never half of one value and half of another. */
__global__ void torn(uint64_t *object, const uint64_t *values, int rounds, unsigned *wrong)
{
    for (int i = 0; i < rounds; i++) {
        if (blockIdx.x == 0)
            gshmem_kernel_copy<GSHMEM_SCOPE_THREAD>(object, &values[i & 1], sizeof *object);
        else {
            uint64_t seen = gshmem_kernel_load(object);
            if (seen != 0 && seen != values[0] && seen != values[1])
                atomicAdd(wrong, 1);
        }
    }
}

static unsigned char *to, *from;
static unsigned *wrong;

template <int scope> static void check(const char *name, int threads, size_t bytes)
{
    copies<scope><<<1, threads>>>(to, from, bytes, wrong);
    CHECK_LAUNCH();
    if (wrong[0])
        CHECK_FAIL("%zu B by a %s of %d from 16n+%u to 16n+%u: byte %d is 0x%02x; %u are wrong",
                   bytes, name, threads, wrong[1] % 16, wrong[1] / 16, (int)wrong[2], wrong[3],
                   wrong[0]);
}

int main()
{
    static const int threads[] = {1, 33, 128, 1024};

    to = shared_array<unsigned char>(ROOM);
    from = shared_array<unsigned char>(ROOM);
    wrong = shared_array<unsigned>(4);
    for (size_t i = 0; i < ROOM; i++)
        from[i] = source_byte(i);

    for (size_t bytes = 0; bytes <= 600; bytes++) {
        check<GSHMEM_SCOPE_THREAD>("thread", 1, bytes);
        check<GSHMEM_SCOPE_WARP>("warp", 32, bytes);
    }
    check<GSHMEM_SCOPE_WARP>("warp", 5, 333);
    for (int n : threads) {
        for (size_t bytes = 0; bytes <= 600; bytes += bytes < 50 || n == 33 ? 1 : 23)
            check<GSHMEM_SCOPE_BLOCK>("block", n, bytes);
    }
    check<GSHMEM_SCOPE_BLOCK>("block", 33, 4099); /* several rounds of each thread */
    check<GSHMEM_SCOPE_THREAD>("thread", 1, 1031);

    uint64_t *object = shared_array<uint64_t>(3);
    object[1] = UINT64_C(0x1111111111111111);
    object[2] = UINT64_C(0x2222222222222222);
    torn<<<2, 1>>>(object, object + 1, 100000, wrong);
    CHECK_LAUNCH();
    CHECK_EQ(wrong[0], 0);
    return 0;
}
