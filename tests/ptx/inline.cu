/* Inline PTX in the styles that public kernels use: each kernel leaves a word for each thread, which
 * is what the host works out. For nvcc alone, for sm_90a. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 128, STAGES = 3, ROUNDS = 20, TILE = 96, WORDS = ROUNDS * TILE };

#define FOR_ONE __device__ static inline

/* --- Barriers in memory --- */

FOR_ONE uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

FOR_ONE void barrier_init(uint64_t *barrier, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(count));
}

FOR_ONE void barrier_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

FOR_ONE void barrier_arrive(uint64_t *barrier)
{
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

/* A loop within the text, with labels of its own wherever it is inlined. */
FOR_ONE void barrier_wait(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n\t"
                 ".reg .pred P1;\n\t"
                 "WAIT_%=:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, %2;\n\t"
                 "@P1 bra.uni DONE_%=;\n\t"
                 "bra.uni WAIT_%=;\n\t"
                 "DONE_%=:\n\t}" ::"r"(shared_address(barrier)),
                 "r"(parity), "n"(10000)
                 : "memory");
}

/* The same, where the loop is C's. */
FOR_ONE bool barrier_has_ended(uint64_t *barrier, uint32_t parity)
{
    uint32_t ended;

    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(ended)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return ended;
}

FOR_ONE bool elect_one(void)
{
    uint32_t is = 0;

    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, %1;\n\t@p mov.u32 %0, 1;\n\t}"
                 : "+r"(is)
                 : "r"(0xffffffffu));
    return is;
}

FOR_ONE uint64_t policy_evict_first(void)
{
    uint64_t policy;

    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

FOR_ONE void copy_in(void *to, const void *from, uint32_t bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier)), "l"(policy_evict_first())
                 : "memory");
}

/* A warp copies tiles into a ring of stages; three warps read them. */
__global__ void pipeline(uint32_t *out, const uint32_t *in)
{
    __shared__ alignas(128) uint32_t tile[STAGES][TILE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const uint32_t warp = threadIdx.x / 32;
    uint32_t sum = 0;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&full[i], 1);
            barrier_init(&empty[i], TILE);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (warp == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
        if (elect_one()) {
            for (int round = 0; round < ROUNDS; round++) {
                const int stage = round % STAGES;
                barrier_wait(&empty[stage], round / STAGES % 2 ^ 1);
                barrier_expect(&full[stage], sizeof tile[stage]);
                copy_in(tile[stage], in + round * TILE, sizeof tile[stage], &full[stage]);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(232));
        for (int round = 0; round < ROUNDS; round++) {
            const int stage = round % STAGES;
            if (round % 2) {
                while (!barrier_has_ended(&full[stage], round / STAGES % 2))
                    ;
            } else {
                barrier_wait(&full[stage], round / STAGES % 2);
            }
            sum += (round + 1) * tile[stage][TILE - 1 - (threadIdx.x - 32)];
            barrier_arrive(&empty[stage]);
        }
    }
    out[threadIdx.x] = sum;
}

static uint32_t want_pipeline(int t, const uint32_t *in)
{
    uint32_t sum = 0;

    for (int round = 0; round < ROUNDS && t >= 32; round++)
        sum += (round + 1) * in[round * TILE + TILE - 1 - (t - 32)];
    return sum;
}

/* From shared memory to global memory, in groups: a copy, and a sum. */
__global__ void copy_back(uint32_t *out, const uint32_t *in)
{
    __shared__ alignas(128) uint32_t tile[THREADS];

    tile[threadIdx.x] = in[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, %1;" ::"r"(1), "r"(THREADS) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out),
                     "r"(shared_address(tile)), "r"((uint32_t)sizeof tile)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group %0;" ::"n"(0) : "memory");
        asm volatile(
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(out),
            "r"(shared_address(tile)), "r"((uint32_t)sizeof tile)
            : "memory");
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::
                         : "memory");
    }
}

static uint32_t want_copy_back(int t, const uint32_t *in)
{
    return 2 * in[t];
}

/* cp.async, 16 bytes each, with a part that is not read; two groups. */
__global__ void copy_async(uint32_t *out, const uint32_t *in)
{
    __shared__ alignas(16) uint32_t tile[2][4 * THREADS];
    const uint32_t place = 4 * threadIdx.x, valid = threadIdx.x % 3 * 8;

    asm volatile(
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n\tcp.async.commit_group;" ::"r"(
            shared_address(&tile[0][place])),
        "l"(in + place), "r"(valid)
        : "memory");
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %0, 0;\n\t"
                 "@p cp.async.ca.shared.global [%1], [%2], 4;\n\t"
                 "@!p st.shared.u32 [%1], 7;\n\t}" ::"r"(threadIdx.x % 2),
                 "r"(shared_address(&tile[1][place])), "l"(in + place)
                 : "memory");
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group %0;" ::"n"(1) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = tile[0][place + 1] + 3 * tile[0][place + 3] + 5 * tile[1][place];
}

static uint32_t want_copy_async(int t, const uint32_t *in)
{
    return (t % 3 ? in[4 * t + 1] : 0) + (t % 3 == 2 ? 3 * in[4 * t + 3] : 0) +
           5 * (t % 2 ? in[4 * t] : 7);
}

/* A cluster of one block: addresses of its member 0, stores and sums that tell a barrier. */
__global__ void cluster(uint32_t *out, const uint32_t *in)
{
    __shared__ alignas(16) uint32_t cell[THREADS + 4];
    __shared__ uint64_t barrier;
    uint32_t rank, size, at, remote, sum = 0;

    cell[threadIdx.x] = 0;
    if (threadIdx.x < 4)
        cell[THREADS + threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        barrier_init(&barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&barrier, 8 * THREADS);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n\tmov.u32 %1, %%cluster_nctarank;"
                 : "=r"(rank), "=r"(size));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(shared_address(&cell[(threadIdx.x + 1) % THREADS])), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"(shared_address(&barrier)), "r"(rank));
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(at),
        "r"(in[threadIdx.x]), "r"(remote)
        : "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(shared_address(&cell[THREADS])), "r"(rank));
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                 "[%0], %1, [%2];" ::"r"(at),
                 "r"(threadIdx.x), "r"(remote)
                 : "memory");
    barrier_wait(&barrier, 0);
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(sum) : "r"(at) : "memory");
    out[threadIdx.x] = cell[threadIdx.x] + sum + 1000000 * size;
}

static uint32_t want_cluster(int t, const uint32_t *in)
{
    return in[(t + THREADS - 1) % THREADS] + THREADS * (THREADS - 1) / 2 + 1000000;
}

/* Loads and stores with advice about caches, vectors, and what other kernels of the stream do. */
__global__ void caches(uint32_t *out, const uint32_t *in)
{
    const uint32_t *from = in + 4 * threadIdx.x;
    uint32_t a, b, c, d, e, f, g, h;
    uint64_t policy;

    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("prefetch.global.L2 [%0];\n\tprefetch.global.L2::evict_last [%0];" ::"l"(from));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(in));
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;"
                 : "=l"(policy));
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "l"(from), "l"(policy));
    asm volatile("ld.global.L1::no_allocate.L2::128B.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(e), "=r"(f), "=r"(g), "=r"(h)
                 : "l"(from));
    if (threadIdx.x >= THREADS / 2)
        return;
    asm volatile("st.global.L1::no_allocate.v2.u32 [%0], {%1, %2};" ::"l"(out + 2 * threadIdx.x),
                 "r"(a + 3 * b), "r"(c + 5 * d)
                 : "memory");
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(out + 2 * threadIdx.x),
                 "r"((e ^ a) | (f ^ b) | (g ^ c) | (h ^ d))
                 : "memory");
}

static uint32_t want_caches(int t, const uint32_t *in)
{
    const uint32_t *from = in + 4 * (t / 2);

    return t % 2 ? from[2] + 5 * from[3] : from[0] + 3 * from[1];
}

/* What lanes do together. */
__global__ void lanes(uint32_t *out, const uint32_t *in)
{
    const uint32_t value = in[threadIdx.x] % 4;
    uint32_t below, same, sum, yes, moved, active, all, lane;

    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("activemask.b32 %0;" : "=r"(active));
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(value));
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.gt.u32 p, %2, 1;\n\t"
                 "vote.sync.ballot.b32 %0, p, 0xffffffff;\n\t"
                 "vote.sync.any.pred q, !p, -1;\n\tselp.u32 %1, 1, 0, q;\n\t}"
                 : "=r"(yes), "=r"(all)
                 : "r"(value));
    asm volatile("{\n\t.reg .pred inside;\n\t"
                 "shfl.sync.up.b32 %0|inside, %1, 1, 0, -1;\n\t@!inside mov.u32 %0, 77;\n\t}"
                 : "=r"(moved)
                 : "r"(value));
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    out[threadIdx.x] = __popc(same & below) + 100 * sum + 10000 * moved + 1000000 * all +
                       10000000 * ((yes >> lane & 1) + (active >> lane & 1));
}

static uint32_t want_lanes(int t, const uint32_t *in)
{
    uint32_t before = 0, sum = 0, any = 0;

    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; i++) {
        before += i < t && in[i] % 4 == in[t] % 4;
        sum += in[i] % 4;
        any |= in[i] % 4 <= 1;
    }
    return before + 100 * sum + 10000 * (t % 32 ? in[t - 1] % 4 : 77) + 1000000 * any +
           10000000 * ((in[t] % 4 > 1) + 1);
}

/* Instructions on bits, carries, and registers of the text's own. */
__global__ void bits(uint32_t *out, const uint32_t *in)
{
    const uint32_t a = in[threadIdx.x] * 2654435761u, b = a ^ 0x0f1e2d3c;
    uint32_t first, mixed, both, turned, dot, low, high, count = 0;

    asm("bfind.u32 %0, %1;" : "=r"(first) : "r"(a >> threadIdx.x % 32));
    asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(mixed) : "r"(a), "r"(b));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(both) : "r"(a), "r"(b), "r"(mixed));
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(turned) : "r"(a), "r"(b), "r"(threadIdx.x));
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(dot) : "r"(a), "r"(b), "r"(5));
    asm("{\n\t.reg .u32 t1;\n\tadd.cc.u32 t1, %2, %3;\n\taddc.u32 %1, %2, 0;\n\tmov.u32 %0, "
        "t1;\n\t}"
        : "=r"(low), "=r"(high)
        : "r"(a), "r"(b));
    asm volatile("{\n\t"
                 ".reg .pred %%more;\n\t"
                 ".reg .b32 rest<2>;\n\t"
                 "mov.b32 rest0, %1;\n\t"
                 "AGAIN%=:\n\t"
                 "setp.ne.u32 %%more, rest0, 0;\n\t"
                 "@%%more sub.u32 rest1, rest0, 1;\n\t"
                 "@%%more and.b32 rest0, rest0, rest1;\n\t"
                 "@%%more add.u32 %0, %0, 1;\n\t"
                 "@%%more bra AGAIN%=;\n\t"
                 "}"
                 : "+r"(count)
                 : "r"(a));
    out[threadIdx.x] =
        first + 3 * mixed + 5 * both + 7 * turned + 11 * dot + 13 * low + 17 * high + 19 * count;
}

static uint32_t want_bits(int t, const uint32_t *in)
{
    const uint32_t a = in[t] * 2654435761u, b = a ^ 0x0f1e2d3c;
    const uint32_t mixed = b << 16 | (a & 0xffff), s = t % 32;
    uint32_t first = ~0u, dot = 5, count = 0;

    for (int i = 0; i < 32; i++) {
        count += a >> i & 1;
        if ((a >> s) >> i & 1)
            first = i;
    }
    for (int i = 0; i < 32; i += 8)
        dot += (a >> i & 0xff) * (b >> i & 0xff);
    return first + 3 * mixed + 5 * (a ^ b ^ mixed) + 7 * (s ? b << s | a >> (32 - s) : b) +
           11 * dot + 13 * (a + b) + 17 * (a + (a + b < a)) + 19 * count;
}

/* Numbers of 8 and 16 bits: what a row of tokens is scaled by. */
__global__ void numbers(uint32_t *out, const uint32_t *)
{
    const float x = (float)threadIdx.x - 40.5f;
    uint32_t halves, back;
    uint16_t bytes;

    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(x * 16), "f"(x));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(back) : "h"(bytes));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(x), "f"(1.0f));
    out[threadIdx.x] = bytes + 3 * back + 5 * halves;
}

/* The nearest number with so many bits of fraction, for those that are not subnormal. */
static double nearest(double x, int bits)
{
    double quantum = 1;

    while (quantum * (1 << bits) * 2 <= (x < 0 ? -x : x))
        quantum *= 2;
    while (quantum * (1 << bits) > (x < 0 ? -x : x))
        quantum /= 2;
    const double part = x / quantum, low = (double)(long)part - (part < (double)(long)part);
    const double rest = part - low;
    return (low + (rest > 0.5 || (rest == 0.5 && (long)low % 2 != 0))) * quantum;
}

/* Its bits in a format of this fraction and bias. */
static uint32_t encoded(double x, int fraction, int bias, int sign_at)
{
    const uint32_t sign = x < 0;
    double size = sign ? -x : x;
    int exponent = 0;

    for (; size >= 2; exponent++)
        size /= 2;
    for (; size < 1; exponent--)
        size *= 2;
    return sign << sign_at | (uint32_t)(exponent + bias) << fraction |
           (uint32_t)((size - 1) * (1 << fraction));
}

static uint32_t want_numbers(int t, const uint32_t *)
{
    const double x = t - 40.5;
    double large = nearest(x * 16, 3);
    const double small = nearest(x, 3);

    large = large > 448 ? 448 : large < -448 ? -448 : large;
    return (encoded(large, 3, 7, 7) << 8 | encoded(small, 3, 7, 7)) +
           3 * (encoded(large, 10, 15, 15) << 16 | encoded(small, 10, 15, 15)) +
           5 * (encoded(nearest(x, 7), 7, 127, 15) << 16 | 0x3f80);
}

/* Atomics of vectors, of halves and of 16 bytes. */
__device__ alignas(16) float sums[4];
__device__ alignas(16) uint64_t pair[2];
__device__ uint32_t halves, counter;

__global__ void atomics(uint32_t *out, const uint32_t *)
{
    uint32_t old, seen;

    asm volatile("red.global.v4.f32.add [%0], {%1, %2, %3, %4};" ::"l"(sums), "f"(1.0f), "f"(2.0f),
                 "f"((float)threadIdx.x), "f"(0.5f)
                 : "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(&halves), "r"(0x3c004000) : "memory");
    asm volatile("atom.add.release.gpu.global.u32 %0, [%1], 1;"
                 : "=r"(old)
                 : "l"(&counter)
                 : "memory");
    for (;;) { /* both words go up together */
        uint64_t a, b;
        uint32_t done;
        asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(pair));
        asm volatile("{\n\t.reg .b128 was, now, got;\n\t.reg .b64 x, y;\n\t.reg .pred p;\n\t"
                     "mov.b128 was, {%1, %2};\n\tmov.b128 now, {%3, %4};\n\t"
                     "atom.relaxed.gpu.global.cas.b128 got, [%5], was, now;\n\t"
                     "mov.b128 {x, y}, got;\n\tsetp.eq.u64 p, x, %1;\n\t"
                     "setp.eq.and.u64 p, y, %2, p;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "l"(a), "l"(b), "l"(a + 1), "l"(b + 3), "l"(pair)
                     : "memory");
        if (done)
            break;
    }
    __syncthreads();
    do
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&counter) : "memory");
    while (seen < THREADS);
    out[threadIdx.x] = (uint32_t)(sums[0] + sums[1] + sums[2] + sums[3]) + (uint32_t)pair[0] +
                       (uint32_t)pair[1] + halves + (old < THREADS);
}

static uint32_t want_atomics(int, const uint32_t *)
{
    return THREADS * 3 + THREADS * (THREADS - 1) / 2 + THREADS / 2 + THREADS + 3 * THREADS +
           0x58005c00 /* 128 and 256 */ + 1;
}

/* Time goes on; threads that have ended are not waited for. */
__global__ void ends(uint32_t *out, const uint32_t *)
{
    uint64_t before, after;
    int64_t clock;

    out[threadIdx.x] = 5;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ge.u32 p, %0, 64;\n\t@p exit;\n\t}" ::"r"(threadIdx.x));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock));
    asm volatile("nanosleep.u32 %0;" ::"r"(1000));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
    __syncthreads();
    out[threadIdx.x] = after >= before && clock ? 6 : 0;
}

static uint32_t want_ends(int t, const uint32_t *)
{
    return t < 64 ? 6 : 5;
}

__global__ void traps(uint32_t *out, const uint32_t *in)
{
    if (in[threadIdx.x] == in[64])
        asm volatile("trap;");
    out[threadIdx.x] = 1;
}

__global__ void breaks(uint32_t *out, const uint32_t *in)
{
    if (in[threadIdx.x] == in[64])
        asm volatile("brkpt;");
    out[threadIdx.x] = 1;
}

static const struct {
    const char *name;
    void (*kernel)(uint32_t *, const uint32_t *);
    uint32_t (*want)(int, const uint32_t *); /* NULL: the launch fails */
} table[] = {
    {"pipeline", pipeline, want_pipeline},
    {"copy_back", copy_back, want_copy_back},
    {"copy_async", copy_async, want_copy_async},
    {"cluster", cluster, want_cluster},
    {"caches", caches, want_caches},
    {"lanes", lanes, want_lanes},
    {"bits", bits, want_bits},
    {"numbers", numbers, want_numbers},
    {"atomics", atomics, want_atomics},
    {"ends", ends, want_ends},
    {"traps", traps, NULL},
    {"breaks", breaks, NULL},
};

int main(void)
{
    static uint32_t in[WORDS], found[THREADS];
    uint32_t *from, *to;
    int wrong = 0;

    for (int i = 0; i < WORDS; i++)
        in[i] = (uint32_t)i * 7919 % 1009;
    for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
        if (cudaMalloc((void **)&from, sizeof in) || cudaMalloc((void **)&to, sizeof found))
            return 1;
        cudaMemcpy(from, in, sizeof in, cudaMemcpyDefault);
        cudaMemset(to, 0xff, sizeof found);
        table[k].kernel<<<1, THREADS>>>(to, from);
        const cudaError_t error = cudaDeviceSynchronize();
        if ((error != cudaSuccess) != !table[k].want) {
            printf("%s: %s\n", table[k].name, cudaGetErrorString(error));
            return 1;
        }
        if (error) {
            cudaDeviceReset();
            continue;
        }
        cudaMemcpy(found, to, sizeof found, cudaMemcpyDefault);
        for (int t = 0; t < THREADS; t++) {
            if (found[t] != table[k].want(t, in)) {
                printf("%s: thread %d has %u instead of %u\n", table[k].name, t, found[t],
                       table[k].want(t, in));
                wrong = 1;
                break;
            }
        }
        cudaFree(from);
        cudaFree(to);
    }
    return wrong;
}
