/* gshmem-perf-device: puts with a signal.
 *
 * put_rate and put_signal: one thread, one destination; the ratio of their rates is what the signal
 * costs. put_signal_fan: one or four blocks, each on a channel of its own, to all other PEs in
 * turn, eight at most. experts: the all-to-all of a mixture-of-experts layer, in which each token
 * goes to eight experts (dispatch) and eight results come back (combine). The rows with _drain make
 * a quiet between the data and its signal, as a proxy without ordered paths would. */
#ifndef GSHMEM_PERF_DEVICE_SIGNALS_H
#define GSHMEM_PERF_DEVICE_SIGNALS_H

#include "device.h"

enum {
    FAN_MOST = 8, /* destinations */
    FAN_BLOCKS = 4,
    TOKENS = 128, /* of each PE */
    TOKEN_BYTES = 7 * 1024,
    TOP = 8, /* experts of a token */
    SENT = TOKENS * TOP,
    EXPERT_THREADS = 32,
};

/* The memory of a layer of experts; all of it is symmetric. */
static bool layer_make(struct layer *l, int n)
{
    l->token = (char *)gshmem_calloc(TOKENS, TOKEN_BYTES);
    l->dispatched = (char *)gshmem_calloc((size_t)n * SENT, TOKEN_BYTES);
    l->combined = (char *)gshmem_calloc(SENT, TOKEN_BYTES);
    l->come = (uint64_t *)gshmem_calloc(n + 1, sizeof *l->come);
    return l->token && l->dispatched && l->combined && l->come;
}

static void layer_end(struct layer *l)
{
    gshmem_raise(gshmem_free(l->come));
    gshmem_raise(gshmem_free(l->combined));
    gshmem_raise(gshmem_free(l->dispatched));
    gshmem_raise(gshmem_free(l->token));
}

enum way { PLAIN, SET, ADD, DRAIN };

/* How many operations a round has: enough to reach a steady rate, and at most some megabytes. */
static constexpr int operations_of(size_t bytes, int most)
{
    return bytes * (size_t)most <= 4 << 20 ? most : (int)((4 << 20) / bytes);
}

/* Puts `bytes` bytes to `pe`, with a signal unless it is a plain put. */
template <int way>
static __device__ void send(void *to, const void *from, size_t bytes, uint64_t *flag,
                            uint64_t value, int pe)
{
    if (way == SET)
        gshmem_putmem_signal_nbi(to, from, bytes, flag, value, GSHMEM_SIGNAL_SET, pe);
    else if (way == ADD)
        gshmem_putmem_signal_nbi(to, from, bytes, flag, value, GSHMEM_SIGNAL_ADD, pe);
    else
        gshmem_putmem_nbi(to, from, bytes, pe);
    if (way == DRAIN) {
        gshmem_quiet();
        gshmem_signal_add(flag, value, pe);
    }
}

/* ---- One destination ---- */

template <int way, int operations> static __global__ void rate(struct job j)
{
    j.begin[0] = now();
    for (int i = 0; i < operations; i++)
        send<way>(j.board->to, j.board->from, j.bytes, &j.board->signalled, 1, j.peer);
    gshmem_quiet();
    j.end[0] = now();
}

/* ---- Several destinations ---- */

template <int way, int operations> static __global__ void fan(struct job j)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes(), block = (int)blockIdx.x;
    const int others = n == 1 ? 1 : n - 1 < FAN_MOST ? n - 1 : FAN_MOST;

    j.begin[block] = now();
    for (int i = 0; i < operations; i++)
        send<way>(j.board->to, j.board->from, j.bytes, &j.board->signalled, 1,
                  n == 1 ? me : (me + 1 + (i + block) % others) % n);
    gshmem_quiet();
    j.end[block] = now();
}

/* ---- A layer of experts ---- */

/* The PE of the k-th expert of a token. All PEs know it, and so how many tokens come. */
static __device__ inline int expert_pe(int pe, int token, int k, int n)
{
    unsigned mix = (unsigned)(pe * TOKENS + token) * 2654435761u;

    return (int)(((mix >> 16) + (unsigned)k * 7u) % (unsigned)n);
}

/* Each thread sends tokens in turn. The results of what a PE has sent go back as soon as all of it
 * has come. Signals count arrivals, over all rounds: j.turn. */
template <int way> static __global__ void experts(struct job j)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes(), thread = (int)threadIdx.x;
    const struct layer l = j.layer;

    if (thread == 0)
        j.begin[0] = now();
    for (int i = thread; i < SENT; i += EXPERT_THREADS)
        send<way>(l.dispatched + ((size_t)me * SENT + i) * TOKEN_BYTES,
                  l.token + (size_t)(i / TOP) * TOKEN_BYTES, TOKEN_BYTES, &l.come[me], 1,
                  expert_pe(me, i / TOP, i % TOP, n));
    for (int from = 0; from < n; from++) {
        uint64_t due = 0;
        for (int i = 0; i < SENT; i++)
            due += expert_pe(from, i / TOP, i % TOP, n) == me;
        gshmem_signal_wait_until(&l.come[from], GSHMEM_CMP_GE, j.turn * due);
        for (int i = thread; i < SENT; i += EXPERT_THREADS) {
            if (expert_pe(from, i / TOP, i % TOP, n) == me)
                send<way>(l.combined + (size_t)i * TOKEN_BYTES,
                          l.dispatched + ((size_t)from * SENT + i) * TOKEN_BYTES, TOKEN_BYTES,
                          &l.come[n], 1, from);
        }
    }
    gshmem_signal_wait_until(&l.come[n], GSHMEM_CMP_GE, j.turn * SENT);
    __syncthreads();
    if (thread == 0) {
        gshmem_quiet();
        j.end[0] = now();
    }
}

/* ---- The rows ---- */

enum { RATE_MOST = 4096, FAN_OPERATIONS_MOST = 1024 };

#define RATE(name, way, size)                                                                      \
    {                                                                                              \
        name "_" #size, rate<way, operations_of(size, RATE_MOST)>, 1,                              \
            operations_of(size, RATE_MOST), ALONE, MILLIONS, 1, size, NULL, 0                      \
    }
#define RATES(size)                                                                                \
    RATE("put_rate", PLAIN, size), RATE("put_signal_set", SET, size),                              \
        RATE("put_signal_add", ADD, size)

#define FAN(name, way, blocks, size)                                                               \
    {                                                                                              \
        name "_" #size, fan<way, operations_of(size, FAN_OPERATIONS_MOST)>, blocks,                \
            operations_of(size, FAN_OPERATIONS_MOST), ALONE, MEGABYTES, 1, size, NULL, blocks      \
    }
#define FANS(size)                                                                                 \
    FAN("put_signal_fan", ADD, 1, size), FAN("put_signal_fan_drain", DRAIN, 1, size),              \
        FAN("put_signal_fan_4", ADD, FAN_BLOCKS, size),                                            \
        FAN("put_signal_fan_4_drain", DRAIN, FAN_BLOCKS, size)

static const struct benchmark signal_benchmarks[] = {
    RATES(8),
    RATES(64),
    RATES(512),
    RATES(4096),
    RATES(32768),
    FANS(8),
    FANS(512),
    FANS(4096),
    FANS(65536),
    FANS(1048576),
    {"experts", experts<ADD>, 1, 1, LAYER, NS, EXPERT_THREADS, TOKEN_BYTES, NULL, 1},
    {"experts_drain", experts<DRAIN>, 1, 1, LAYER, NS, EXPERT_THREADS, TOKEN_BYTES, NULL, 1},
};

#endif
