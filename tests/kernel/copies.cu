/* Memory-sized put, get and put with signal, by thread, warp and block, blocking and not, on each kind
 * of context: all sizes from 0 to 300 at all alignments, and some around 4 KiB and 1 MiB. Contents are
 * compared to what they were copied from, and nothing around them may have changed.
 *
 *     copies        each size at a few alignments
 *     copies all    at all 256
 */
#include "kernel.h"

enum operation { PUT, PUT_NBI, PUT_SIGNAL, PUT_SIGNAL_NBI, GET, GET_NBI, OPERATIONS };

/* One copy: where in its cell both sides begin, and how much. */
struct one {
    unsigned to, from;
    size_t bytes;
};

#define GUARD   ((unsigned char)0xa5)
#define BEFORE  32 /* guard bytes, at least so many on either side */
#define SHIFTS  997 /* contents are a piece of `noise`, another for each cell, PE and round */
#define BIG     ((size_t)1 << 20)
#define MOST    4096 /* copies in one round */

static unsigned char noise[BIG + SHIFTS + 1];

/* ---- In kernels ------------------------------------------------------------------------------ */

struct call {
    gshmem_ctx_t ctx;
    void *dest;
    const void *source;
    size_t bytes;
    uint64_t *flag;
    uint64_t signal;
    int op;
    int pe;
};

template <int scope> __device__ gshmem_status_t perform(enum operation operation, struct call c);

template <> __device__ gshmem_status_t perform<GSHMEM_SCOPE_THREAD>(enum operation operation,
                                                                    struct call c)
{
    switch (operation) {
    case PUT:
        return gshmem_ctx_putmem(c.ctx, c.dest, c.source, c.bytes, c.pe);
    case PUT_NBI:
        return gshmem_ctx_putmem_nbi(c.ctx, c.dest, c.source, c.bytes, c.pe);
    case PUT_SIGNAL:
        return gshmem_ctx_putmem_signal(c.ctx, c.dest, c.source, c.bytes, c.flag, c.signal, c.op,
                                        c.pe);
    case PUT_SIGNAL_NBI:
        return gshmem_ctx_putmem_signal_nbi(c.ctx, c.dest, c.source, c.bytes, c.flag, c.signal, c.op,
                                            c.pe);
    case GET:
        return gshmem_ctx_getmem(c.ctx, c.dest, c.source, c.bytes, c.pe);
    default:
        return gshmem_ctx_getmem_nbi(c.ctx, c.dest, c.source, c.bytes, c.pe);
    }
}

template <> __device__ gshmem_status_t perform<GSHMEM_SCOPE_WARP>(enum operation operation,
                                                                  struct call c)
{
    switch (operation) {
    case PUT:
        return gshmem_ctx_putmem_warp(c.ctx, c.dest, c.source, c.bytes, c.pe);
    case PUT_NBI:
        return gshmem_ctx_putmem_nbi_warp(c.ctx, c.dest, c.source, c.bytes, c.pe);
    case PUT_SIGNAL:
        return gshmem_ctx_putmem_signal_warp(c.ctx, c.dest, c.source, c.bytes, c.flag, c.signal, c.op,
                                             c.pe);
    case PUT_SIGNAL_NBI:
        return gshmem_ctx_putmem_signal_nbi_warp(c.ctx, c.dest, c.source, c.bytes, c.flag, c.signal,
                                                 c.op, c.pe);
    case GET:
        return gshmem_ctx_getmem_warp(c.ctx, c.dest, c.source, c.bytes, c.pe);
    default:
        return gshmem_ctx_getmem_nbi_warp(c.ctx, c.dest, c.source, c.bytes, c.pe);
    }
}

template <> __device__ gshmem_status_t perform<GSHMEM_SCOPE_BLOCK>(enum operation operation,
                                                                   struct call c)
{
    switch (operation) {
    case PUT:
        return gshmem_ctx_putmem_block(c.ctx, c.dest, c.source, c.bytes, c.pe);
    case PUT_NBI:
        return gshmem_ctx_putmem_nbi_block(c.ctx, c.dest, c.source, c.bytes, c.pe);
    case PUT_SIGNAL:
        return gshmem_ctx_putmem_signal_block(c.ctx, c.dest, c.source, c.bytes, c.flag, c.signal,
                                              c.op, c.pe);
    case PUT_SIGNAL_NBI:
        return gshmem_ctx_putmem_signal_nbi_block(c.ctx, c.dest, c.source, c.bytes, c.flag, c.signal,
                                                  c.op, c.pe);
    case GET:
        return gshmem_ctx_getmem_block(c.ctx, c.dest, c.source, c.bytes, c.pe);
    default:
        return gshmem_ctx_getmem_nbi_block(c.ctx, c.dest, c.source, c.bytes, c.pe);
    }
}

/* The threads, warps or blocks of the grid take the copies in turn. */
template <int scope> __device__ void turn(int *first, int *step)
{
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    int each = scope == GSHMEM_SCOPE_THREAD ? 1 : scope == GSHMEM_SCOPE_WARP ? 32 : threads;
    int in_block = (threads + each - 1) / each;

    *first = blockIdx.x * in_block + thread / each;
    *step = gridDim.x * in_block;
}

template <int scope>
__global__ void copy_all(enum operation operation, struct call c, const struct one *list, int n,
                         size_t cell, struct found *found)
{
    int first, step;

    turn<scope>(&first, &step);
    for (int i = first; i < n; i += step) {
        struct call mine = c;
        mine.dest = (char *)c.dest + i * cell + BEFORE + list[i].to;
        mine.source = (const char *)c.source + i * cell + BEFORE + list[i].from;
        mine.bytes = list[i].bytes;
        mine.flag = c.flag + i;
        EXPECT(found, perform<scope>(operation, mine), GSHMEM_OK);
    }
    EXPECT(found, gshmem_ctx_quiet(c.ctx), GSHMEM_OK);
}

/* ---- One round -------------------------------------------------------------------------------- */

struct side {
    unsigned char *symmetric; /* where puts go to, and gets come from */
    unsigned char *own;       /* the other side: symmetric too, or any memory */
    unsigned char *draft;     /* the host's: what goes to either, or has come from one */
    uint64_t *flag;           /* symmetric */
    struct one *list;
    struct found *found;
};

static bool puts_data(enum operation operation)
{
    return operation < GET;
}

/* Who has put here what I put to (me + step) % n. */
static int writer(int step)
{
    return (gshmem_my_pe() + gshmem_n_pes() - step) % gshmem_n_pes();
}

static const unsigned char *contents(int pe, int i, int round)
{
    return noise + mixed2(pe * 131071 + round, i) % SHIFTS;
}

static void fill(unsigned char *cells, const struct side *s, int n, size_t cell, int round)
{
    for (int i = 0; i < n; i++)
        memcpy(s->draft + i * cell + BEFORE + s->list[i].from, contents(gshmem_my_pe(), i, round),
               s->list[i].bytes);
    copy_in(cells, s->draft, n * cell);
}

static void check_cell(const unsigned char *at, const struct one *one, const unsigned char *expected,
                       size_t cell, enum operation operation, int i)
{
    size_t begin = BEFORE + one->to, end = begin + one->bytes;

    for (size_t j = begin; j < end && memcmp(at + begin, expected, one->bytes) != 0; j++) {
        if (at[j] != expected[j - begin])
            CHECK_FAIL("operation %d, copy %d of %zu B from alignment %u to %u: byte %zu is %#x, "
                       "expected %#x",
                       operation, i, one->bytes, one->from, one->to, j - begin, at[j],
                       expected[j - begin]);
    }
    for (size_t j = 0; j < cell; j = j + 1 == begin ? end : j + 1) {
        if (at[j] != GUARD && !(j >= begin && j < end))
            CHECK_FAIL("operation %d, copy %d of %zu B from alignment %u to %u: byte %zd beside it "
                       "is %#x",
                       operation, i, one->bytes, one->from, one->to, (ssize_t)(j - begin), at[j]);
    }
}

static dim3 block_of(int round)
{
    switch (mixed2(round, 2) % 4) { /* the last warp may be a small one */
    case 0:
        return dim3(64);
    case 1:
        return dim3(7, 3, 2);
    case 2:
        return dim3(33);
    default:
        return dim3(96);
    }
}

template <int scope>
static void run(enum operation operation, gshmem_ctx_t ctx, const struct side *s, int n, size_t cell,
                int round)
{
    int step = (int)(mixed2(round, 0) % gshmem_n_pes()), pe = (gshmem_my_pe() + step) % gshmem_n_pes();
    unsigned char *to = puts_data(operation) ? s->symmetric : s->own;
    unsigned char *from = puts_data(operation) ? s->own : s->symmetric;
    int op = mixed2(round, 1) % 2 ? GSHMEM_SIGNAL_ADD : GSHMEM_SIGNAL_SET;
    gshmem_team_t team = GSHMEM_TEAM_WORLD;
    static uint64_t flags[MOST];

    memset(s->draft, GUARD, n * cell);
    copy_in(to, s->draft, n * cell);
    fill(from, s, n, cell, round);
    for (int i = 0; i < n; i++)
        flags[i] = (uint64_t)round;
    copy_in(s->flag, flags, n);
    if (ctx != GSHMEM_CTX_DEFAULT) {
        CHECK_OK(gshmem_ctx_get_team(ctx, &team));
        pe = gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, pe, team);
    }
    CHECK_OK(gshmem_barrier_all());

    /* a command of one slot has 32 bits for it */
    const uint64_t value = mixed2(round, 3) % 2 ? 5 : UINT64_C(5) << 32;
    struct call c = {ctx, to, from, 0, s->flag, value, op, pe};
    copy_all<scope><<<3, block_of(round)>>>(operation, c, s->list, n, cell, s->found);
    CHECK_FOUND(s->found);
    CHECK_OK(gshmem_barrier_all());

    int of = puts_data(operation) ? writer(step) : (gshmem_my_pe() + step) % gshmem_n_pes();
    uint64_t signal = operation != PUT_SIGNAL && operation != PUT_SIGNAL_NBI ? round
                      : op == GSHMEM_SIGNAL_SET                               ? value
                                                                              : round + value;
    copy_out(s->draft, to, n * cell);
    copy_out(flags, s->flag, n);
    for (int i = 0; i < n; i++) {
        check_cell(s->draft + i * cell, &s->list[i], contents(of, i, round), cell, operation, i);
        CHECK_EQ(flags[i], signal);
    }
    CHECK_OK(gshmem_barrier_all());
}

/* ---- All of them ------------------------------------------------------------------------------ */

#define CONTEXTS 3

/* The default one, one of its own, and one in which the PEs are numbered the other way round. */
static void make_contexts(gshmem_ctx_t ctx[CONTEXTS], gshmem_team_t *team)
{
    int n = gshmem_n_pes();

    ctx[0] = GSHMEM_CTX_DEFAULT;
    CHECK_OK(gshmem_ctx_create(0, &ctx[1]));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0, team));
    CHECK_OK(gshmem_team_create_ctx(*team, 0, &ctx[2]));
}

static void each_operation(const gshmem_ctx_t ctx[CONTEXTS], const struct side *s, int n, size_t cell,
                           int *round)
{
    CHECK(n <= MOST);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        gshmem_ctx_t one = ctx[mixed2(*round, 3) % CONTEXTS];
        run<GSHMEM_SCOPE_THREAD>((enum operation)operation, one, s, n, cell, (*round)++);
        run<GSHMEM_SCOPE_WARP>((enum operation)operation, one, s, n, cell, (*round)++);
        run<GSHMEM_SCOPE_BLOCK>((enum operation)operation, one, s, n, cell, (*round)++);
    }
}

/* 0..300 bytes, each size at `alignments` of the 256 pairs, as many sizes in a round as fit. */
static void small_sizes(const gshmem_ctx_t ctx[CONTEXTS], const struct side *s, int alignments,
                        int *round)
{
    const size_t cell = BEFORE + 16 + 304 + BEFORE;
    int n = 0;

    for (int pair = 0; pair < alignments; pair++) {
        for (int bytes = 0; bytes <= 300; bytes++) {
            uint64_t which = alignments == 256 ? (uint64_t)pair : mixed2(pair, bytes);
            s->list[n++] = {(unsigned)(which & 15), (unsigned)(which >> 4 & 15), (size_t)bytes};
        }
        if (n + 301 > MOST || pair + 1 == alignments) {
            each_operation(ctx, s, n, cell, round);
            n = 0;
        }
    }
}

/* Around what commands copy at once, and around 1 MiB. */
static void big_sizes(const gshmem_ctx_t ctx[CONTEXTS], const struct side *s, int *round)
{
    const unsigned sides[][2] = {{0, 0}, {1, 1}, {8, 0}, {4, 12}, {0, 3}, {15, 14}};
    int n = 0;

    for (const unsigned *side : sides) {
        for (size_t bytes = 4094; bytes <= 4098; bytes++)
            s->list[n++] = {side[0], side[1], bytes};
        for (size_t bytes = 16383; bytes <= 16384; bytes++) /* a put_signal of one slot, or two */
            s->list[n++] = {side[0], side[1], bytes};
        s->list[n++] = {side[0], side[1], 65535};
    }
    each_operation(ctx, s, n, 65536 + 128, round);
    n = 0;
    for (size_t bytes = BIG - 1; bytes <= BIG + 1; bytes++)
        s->list[n++] = {(unsigned)(bytes & 7), (unsigned)(bytes & 3), bytes};
    each_operation(ctx, s, n, BIG + 128, round);
}

int main(int argc, char **argv)
{
    int alignments = argc > 1 && strcmp(argv[1], "all") == 0 ? 256 : FEW ? 1 : 6;
    const size_t bytes = 4 * (BIG + 128);
    gshmem_ctx_t ctx[CONTEXTS];
    gshmem_team_t team;
    struct side s;
    int round = 0;

    CHECK_OK(gshmem_init());
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)mixed(i);
    s.symmetric = symmetric_array<unsigned char>(bytes);
    s.flag = symmetric_array<uint64_t>(MOST);
    s.draft = (unsigned char *)malloc(bytes);
    CHECK(s.draft);
    s.list = shared_array<struct one>(MOST);
    s.found = shared_array<struct found>(1);
    make_contexts(ctx, &team);

    unsigned char *others[] = {shared_array<unsigned char>(bytes),
                               symmetric_array<unsigned char>(bytes)};
    for (unsigned char *own : others) {
        s.own = own;
        small_sizes(ctx, &s, alignments, &round);
        if (alignments < 256)
            big_sizes(ctx, &s, &round);
    }

    CHECK_OK(gshmem_ctx_destroy(ctx[1]));
    CHECK_OK(gshmem_ctx_destroy(ctx[2]));
    CHECK_OK(gshmem_team_destroy(team));
    free(s.draft);
    gshmem_free(others[1]);
    gshmem_free(s.symmetric);
    gshmem_free(s.flag);
    CHECK_CUDA(cudaFree(others[0]));
    CHECK_CUDA(cudaFree(s.list));
    CHECK_CUDA(cudaFree(s.found));
    CHECK_OK(gshmem_finalize());
    return 0;
}
