/* Steps of the wide workload in which all PEs take part: collectives of all types and sizes, active
 * sets, a heap that grows, memory of the program's own, streams; and calls that must be refused. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fiber.h"
#include "gpu.h"
#include "program.h"
#include "record.h"
#include "runtime/base/clock.h"
#include "runtime/job/extensions.h"

/* ---- Collectives of all types ---- */

/* A small number as a value of the type, and back: a tenth of the range that the type counts in. */
static void to_type(enum gshmem_type type, void *at, int value)
{
    switch (type) {
    case GSHMEM_TYPE_FLOAT:
        *(float *)at = (float)value;
        return;
    case GSHMEM_TYPE_DOUBLE:
        *(double *)at = value;
        return;
    case GSHMEM_TYPE_LONGDOUBLE:
        *(long double *)at = value;
        return;
    case GSHMEM_TYPE_COMPLEXF:
        ((float *)at)[0] = (float)value;
        ((float *)at)[1] = 0;
        return;
    case GSHMEM_TYPE_COMPLEXD:
        ((double *)at)[0] = value;
        ((double *)at)[1] = 0;
        return;
    case GSHMEM_TYPE_HALF: { /* exact for small whole numbers */
        static const uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
        *(uint16_t *)at = half[value];
        return;
    }
    case GSHMEM_TYPE_BFLOAT16: {
        float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        *(uint16_t *)at = (uint16_t)(bits >> 16);
        return;
    }
    default:
        memcpy(at, &value, type % 4 == 0 ? 1 : type % 4 == 1 ? 2 : 4);
        if (type % 4 == 3)
            *(int64_t *)at = value;
    }
}

static size_t type_size(enum gshmem_type type)
{
    static const unsigned char bytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, sizeof(long double),
                                          8, 16, 2, 2};

    return bytes[type];
}

/* What PE pe gives at i: for a product mostly 1, so that all types can hold it. */
static int given(const struct program *p, enum gshmem_op op, int pe, size_t i)
{
    return op == GSHMEM_OP_PROD || op == GSHMEM_OP_SUM
               ? (pe % 8 == (p->step + (int)i) % 8) + (op == GSHMEM_OP_PROD)
               : (pe + p->step + (int)i) % 4;
}

static int combined(const struct program *p, enum gshmem_op op, size_t i)
{
    int value = given(p, op, 0, i);

    for (int pe = 1; pe < p->n; pe++) {
        const int next = given(p, op, pe, i);
        value = op == GSHMEM_OP_SUM    ? value + next
                : op == GSHMEM_OP_PROD ? value * next
                : op == GSHMEM_OP_MIN  ? (next < value ? next : value)
                : op == GSHMEM_OP_MAX  ? (next > value ? next : value)
                : op == GSHMEM_OP_AND  ? (value & next)
                : op == GSHMEM_OP_OR   ? (value | next)
                                       : (value ^ next);
    }
    return value;
}

static bool is_value(enum gshmem_type type, const void *at, int value)
{
    long double due[2] = {0};
    const size_t bytes = type == GSHMEM_TYPE_LONGDOUBLE ? 10 : type_size(type); /* the rest pads */

    to_type(type, due, value);
    return memcmp(at, due, bytes) == 0;
}

static bool allocate(struct program *p, size_t bytes, char **out)
{
    program_enter(p, "gshmem_malloc", true);
    *out = plan.gpu ? gshmem_malloc_with_hints(bytes, GSHMEM_MALLOC_HOST) : gshmem_malloc(bytes);
    return program_leave(p, *out ? GSHMEM_OK : gshmem_last_error(NULL));
}

static bool reduce_typed(struct program *p, char *to, char *from, size_t n)
{
    const enum gshmem_type type = (enum gshmem_type)chance_below(&p->common, GSHMEM_TYPE_COUNT);
    const bool pair = type == GSHMEM_TYPE_COMPLEXF || type == GSHMEM_TYPE_COMPLEXD;
    const int ops = type < GSHMEM_TYPE_FLOAT ? GSHMEM_OP_COUNT : pair ? 2 : 4;
    const enum gshmem_op op = (enum gshmem_op)chance_below(&p->common, (uint64_t)ops);
    const bool scatter = chance_one_in(&p->common, 3), in_place = chance_one_in(&p->common, 3);
    const size_t bytes = type_size(type), all = scatter ? n * (size_t)p->n : n;

    if (in_place)
        to = from;
    for (size_t i = 0; i < all; i++)
        to_type(type, from + i * bytes, given(p, op, p->me, i));
    if (!(scatter ? TRY_ALL(p, gshmem_reducescatter(GSHMEM_TEAM_WORLD, type, op, to, from, n))
                  : TRY_ALL(p, gshmem_reduce(GSHMEM_TEAM_WORLD, type, op, to, from, n))))
        return false;
    for (size_t i = 0; i < n; i++) {
        const size_t at = scatter ? (size_t)p->me * n + i : i;
        if (!is_value(type, to + i * bytes, combined(p, op, at))) {
            world_fail("PE %d: element %zu of reduction %d of type %d is wrong", p->me, i, op,
                       type);
            return false;
        }
    }
    return true;
}

/* Byte i of what PE `from` gives PE `to` (-1: all). */
static char byte_for(const struct program *p, int from, int to, size_t i)
{
    return (char)(from * 7 + to * 13 + p->step + (int)(i * 31));
}

static bool check_bytes(struct program *p, const char *what, const char *at, int from, int to,
                        size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != byte_for(p, from, to, i)) {
            world_fail("PE %d: byte %zu of %s from PE %d is wrong", p->me, i, what, from);
            return false;
        }
    }
    return true;
}

static bool move_large(struct program *p, char *to, char *from, size_t bytes)
{
    const size_t n = (size_t)p->n;
    const int root = (int)chance_below(&p->common, n);

    switch (chance_below(&p->common, 4)) {
    case 0:
        for (size_t i = 0; i < bytes; i++)
            from[i] = byte_for(p, p->me, -1, i);
        return TRY_ALL(p, gshmem_path_broadcast_others(GSHMEM_TEAM_WORLD, to, from, bytes, root)) &&
               (p->me == root || check_bytes(p, "a broadcast", to, root, -1, bytes));
    case 1:
        for (size_t i = 0; i < bytes; i++)
            from[i] = byte_for(p, p->me, -1, i);
        if (!TRY_ALL(p, gshmem_path_collect(GSHMEM_TEAM_WORLD, to, n * bytes, from, bytes)))
            return false;
        for (int pe = 0; pe < p->n; pe++) {
            if (!check_bytes(p, "a collect", to + (size_t)pe * bytes, pe, -1, bytes))
                return false;
        }
        return true;
    case 2:
        for (int pe = 0; pe < p->n; pe++) {
            for (size_t i = 0; i < bytes; i++)
                from[(size_t)pe * bytes + i] = byte_for(p, p->me, pe, i);
        }
        if (!TRY_ALL(p, gshmem_alltoallmem(GSHMEM_TEAM_WORLD, to, from, bytes)))
            return false;
        for (int pe = 0; pe < p->n; pe++) {
            if (!check_bytes(p, "an alltoall", to + (size_t)pe * bytes, pe, p->me, bytes))
                return false;
        }
        return true;
    default: /* with gaps: each second element */
        bytes = bytes / 2 & ~(size_t)7;
        memset(to, 0, n * bytes * 2);
        for (int pe = 0; pe < p->n; pe++) {
            for (size_t i = 0; i < bytes; i++)
                from[(size_t)pe * bytes * 2 + i / 8 * 16 + i % 8] = byte_for(p, p->me, pe, i);
        }
        if (!TRY_ALL(p, gshmem_alltoallsmem(GSHMEM_TEAM_WORLD, to, from, 2, 2, 8, bytes / 8)))
            return false;
        for (int pe = 0; pe < p->n; pe++) {
            for (size_t i = 0; i < bytes; i++) {
                if (to[(size_t)pe * bytes * 2 + i / 8 * 16 + i % 8] == byte_for(p, pe, p->me, i))
                    continue;
                world_fail("PE %d: byte %zu of an alltoalls from PE %d is wrong", p->me, i, pe);
                return false;
            }
        }
        return true;
    }
}

bool step_typed(struct program *p)
{
    const size_t most = chance_one_in(&p->common, 3) ? 40000 : 800,
                 bytes = 16 + chance_below(&p->common, most), room = (size_t)p->n * bytes * 2 + 64;
    char *to, *from;
    bool fine = true;

    if (!allocate(p, room, &to))
        return false;
    if (!allocate(p, room, &from))
        return false;
    for (uint64_t n = 1 + chance_below(&p->common, 3); n && fine; n--)
        fine = chance_one_in(&p->common, 2) ? reduce_typed(p, to, from, bytes / 16)
                                            : move_large(p, to, from, bytes);
    return fine && TRY_ALL(p, gshmem_free(to)) && TRY_ALL(p, gshmem_free(from));
}

/* ---- Active sets ---- */

bool step_sets(struct program *p)
{
    gshmem_team_t team;
    long *sync = p->area->sync;

    for (uint64_t n = 1 + chance_below(&p->common, 3); n; n--) {
        const int log_stride = (int)chance_below(&p->common, 2);
        const int start = (int)chance_below(&p->common, (uint64_t)p->n);
        const int size = 1 + (p->n - 1 - start) / (1 << log_stride);
        const int place = p->me - start;
        if (place >= 0 && place % (1 << log_stride) == 0 &&
            (!TRY_ALL(p, gshmem_path_active_set(start, log_stride, size, sync, "a set", &team)) ||
             !TRY_ALL(p, gshmem_team_sync(team)) || !TRY(p, gshmem_path_leave_set(team))))
            return false;
        if (!TRY_ALL(p, gshmem_barrier_all())) /* the array is free again */
            return false;
    }
    return true;
}

/* ---- Memory ---- */

/* More than there was; what remains is as it was. */
bool step_growth(struct program *p)
{
    static const long hints[] = {0, GSHMEM_MALLOC_HOST, GSHMEM_MALLOC_ATOMICS_REMOTE,
                                 GSHMEM_MALLOC_SIGNAL_REMOTE};
    const size_t bytes = ((size_t)1 << 20) + chance_below(&p->common, 8 << 20);
    char *a, *b;

    program_enter(p, "gshmem_malloc_with_hints", true);
    a = gshmem_malloc_with_hints(bytes, hints[chance_below(&p->common, 4)]);
    if (!program_leave(p, a ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    memset(gpu_bytes(a + bytes - 1000), p->me + 1, 1000);
    const size_t alignment = (size_t)64 << chance_below(&p->common, 10);
    program_enter(p, "gshmem_align", true);
    b = gshmem_align(alignment, 1 + chance_below(&p->common, 9999));
    if (!program_leave(p, b ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    const size_t more = bytes + chance_below(&p->common, 4 << 20);
    program_enter(p, "gshmem_realloc", true);
    a = gshmem_realloc(a, more);
    if (!program_leave(p, a ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    for (size_t i = bytes - 1000; i < bytes; i++) {
        if (*(char *)gpu_bytes(a + i) != (char)(p->me + 1)) {
            world_fail("PE %d: byte %zu was lost as its object grew", p->me, i);
            return false;
        }
    }
    return TRY_ALL(p, gshmem_free(a)) && TRY_ALL(p, gshmem_free(b));
}

/* Memory of the program's own, registered as a source. */
bool step_register(struct program *p)
{
    enum { OWN = 1 << 16 };
    const int target = (int)chance_below(&p->chance, (uint64_t)p->n);
    char *own = mmap(NULL, OWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t round = ++p->values % 100 + 1;
    bool fine;

    memset(own, (int)round, OWN);
    fine = TRY(p, gshmem_buffer_register(own, OWN)) && TRY(p, gshmem_quiet()) &&
           model_check_written(p, "quiet");
    if (fine) {
        unsigned char *due = p->expected + (size_t)target * p->slot_bytes;
        memset(due, (int)round, 4000);
        p->checked[target] = 0;
        fine = TRY(p, gshmem_putmem_nbi(p->slots + (size_t)p->me * p->slot_bytes, own, 4000,
                                        target));
        p->written[target] = 4000;
        fine = fine && TRY(p, gshmem_quiet()) && model_check_written(p, "quiet");
    }
    fine = fine && TRY(p, gshmem_buffer_unregister(own));
    if (fine) /* after a failure it may still be read */
        munmap(own, OWN);
    return fine;
}

/* ---- Streams ---- */

/* A failure of a call on a stream goes to the error handler, here before the call returns. */
#define ON_STREAM(p, call)                                                                         \
    (program_enter(p, #call, true),                                                                \
     program_leave_stream(p, call))

static bool program_leave_stream(struct program *p, gshmem_status_t status)
{
    return program_leave(p, status ? status : p->raised);
}

/* On the default stream, which does its work at once where no runtime of CUDA's is there. */
bool step_streams(struct program *p)
{
    const int next = (p->me + 1) % p->n, before = (p->me + p->n - 1) % p->n;
    const uint64_t round = ++p->streamed;
    struct area *a = p->area;
    uint64_t value = round * 1000 + (uint64_t)p->me;

    if (plan.gpu) /* which has no kernels of its own */
        return true;
    if (!ON_STREAM(p, gshmem_putmem_on_stream(&a->streamed[0], &value, sizeof value, next, NULL)) ||
        !ON_STREAM(p, gshmem_path_p_on_stream(&a->streamed[1], &value, sizeof value, next, NULL)) ||
        !ON_STREAM(p, gshmem_putmem_signal_on_stream(&a->streamed[2], &value, sizeof value,
                                               &a->stream_signal, round, GSHMEM_SIGNAL_SET, next,
                                               NULL)) ||
        !ON_STREAM(p, gshmem_quiet_on_stream(NULL)) ||
        !ON_STREAM(p, gshmem_signal_wait_until_on_stream(&a->stream_signal, GSHMEM_CMP_GE, round,
                                                   NULL)) ||
        !ON_STREAM(p, gshmem_barrier_all_on_stream(NULL)))
        return false;
    value = round * 1000 + (uint64_t)before;
    for (int i = 0; i < 3; i++) {
        if (a->streamed[i] != value) {
            world_fail("PE %d: word %d of a stream is %llu, not %llu", p->me, i,
                       (unsigned long long)a->streamed[i], (unsigned long long)value);
            return false;
        }
    }
    uint64_t got = 0, *to = p->to, *from = p->from;
    for (size_t i = 0; i < (size_t)p->n; i++)
        from[i] = round + i;
    return ON_STREAM(p, gshmem_getmem_on_stream(&got, &a->streamed[0], 8, next, NULL)) &&
           ON_STREAM(p, gshmem_reduce_on_stream(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_UINT64, GSHMEM_OP_SUM,
                                              to, from, 1, NULL)) &&
           (to[0] == round * (uint64_t)p->n ||
            (world_fail("PE %d: a sum on a stream is %llu, not %llu", p->me,
                        (unsigned long long)to[0], (unsigned long long)(round * (uint64_t)p->n)),
             false)) &&
           ON_STREAM(p, gshmem_alltoallmem_on_stream(GSHMEM_TEAM_WORLD, to, from, 8, NULL)) &&
           ON_STREAM(p, gshmem_fcollectmem_on_stream(GSHMEM_TEAM_WORLD, to, from, 8, NULL)) &&
           ON_STREAM(p, gshmem_broadcastmem_on_stream(GSHMEM_TEAM_WORLD, to, from, 8, 0, NULL)) &&
           ON_STREAM(p, gshmem_inscan_on_stream(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_UINT64, to, from, 1,
                                              NULL)) &&
           ON_STREAM(p, gshmem_exscan_on_stream(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_UINT64, to, from, 1,
                                              NULL)) &&
           ON_STREAM(p, gshmem_collectmem_on_stream(GSHMEM_TEAM_WORLD, to, from, 8, NULL)) &&
           ON_STREAM(p, gshmem_reducescatter_on_stream(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_UINT64,
                                                     GSHMEM_OP_MAX, to, from, 1, NULL)) &&
           ON_STREAM(p, gshmem_sync_all_on_stream(NULL)) &&
           ON_STREAM(p, gshmem_team_sync_on_stream(GSHMEM_TEAM_WORLD, NULL)) &&
           ON_STREAM(p, gshmem_signal_op_on_stream(&a->streamed[2], 0, GSHMEM_SIGNAL_ADD, next, NULL)) &&
           ON_STREAM(p, gshmem_barrier_on_stream(GSHMEM_TEAM_WORLD, NULL));
}

/* ---- Mistakes ---- */

/* A call that must be refused, without an effect. */
static bool refused(struct program *p, const char *call, gshmem_status_t status)
{
    if (status)
        return true;
    world_fail("PE %d: %s is not refused", p->me, call);
    return false;
}

#define REFUSED(p, call) (program_enter(p, #call, false), refused(p, #call, call))

bool step_mistakes(struct program *p)
{
    const gshmem_ctx_t c = GSHMEM_CTX_DEFAULT;
    const gshmem_team_t all = GSHMEM_TEAM_WORLD, none = GSHMEM_TEAM_INVALID;
    const int pe = (int)chance_below(&p->chance, (uint64_t)p->n);
    uint64_t local[8] = {0}, got, *sym = p->to;
    gshmem_ctx_t ctx;
    gshmem_team_t team;
    uint64_t *odd = (uint64_t *)((char *)p->to + 1);

    return REFUSED(p, gshmem_putmem(sym, local, 8, p->n)) &&
           REFUSED(p, gshmem_putmem(sym, local, 8, -1)) &&
           REFUSED(p, gshmem_putmem(local, local, 8, pe)) &&
           REFUSED(p, gshmem_putmem(sym, NULL, 8, pe)) &&
           REFUSED(p, gshmem_putmem_nbi(sym, local, (size_t)1 << 40, pe)) &&
           REFUSED(p, gshmem_getmem(local, local, 8, pe)) &&
           REFUSED(p, gshmem_getmem(NULL, sym, 8, pe)) &&
           REFUSED(p, gshmem_ctx_putmem(GSHMEM_CTX_INVALID, sym, local, 8, pe)) &&
           REFUSED(p, gshmem_ctx_quiet(GSHMEM_CTX_INVALID)) &&
           REFUSED(p, gshmem_ctx_destroy(GSHMEM_CTX_DEFAULT)) &&
           REFUSED(p, gshmem_ctx_iputmem(c, sym, local, 0, 1, 8, 2, pe)) &&
           REFUSED(p, gshmem_ctx_igetmem(c, local, sym, 1, -1, 8, 2, pe)) &&
           REFUSED(p, gshmem_ctx_ibputmem(c, sym, local, 1, 1, 2, 8, 2, pe)) &&
           REFUSED(p, gshmem_putmem_signal(sym, local, 8, local, 1, GSHMEM_SIGNAL_SET, pe)) &&
           REFUSED(p, gshmem_putmem_signal(sym, local, 8, &sym[1], 1, 77, pe)) &&
           REFUSED(p, gshmem_signal_op(odd, 1, GSHMEM_SIGNAL_ADD, pe)) &&
           REFUSED(p, gshmem_path_atomic(c, GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, local, 1, 0, &got,
                                         pe)) &&
           REFUSED(p, gshmem_path_atomic(c, GSHMEM_AMO_ADD, GSHMEM_TYPE_UINT64, odd, 1, 0, &got,
                                         pe)) &&
           REFUSED(p, gshmem_uint64_wait_until(sym, 99, 1)) &&
           REFUSED(p, gshmem_uint64_wait_until_all(sym, 2, NULL, 99, 1)) &&
           REFUSED(p, gshmem_uint64_wait_until(odd, GSHMEM_CMP_EQ, 1)) &&
           REFUSED(p, gshmem_team_split_strided(none, 0, 1, 1, NULL, 0, &team)) &&
           REFUSED(p, gshmem_barrier(none)) && REFUSED(p, gshmem_team_sync(none)) &&
           REFUSED(p, gshmem_team_destroy(all)) && REFUSED(p, gshmem_team_destroy(none)) &&
           REFUSED(p, gshmem_broadcastmem(none, sym, sym, 8, 0)) &&
           REFUSED(p, gshmem_team_create_ctx(none, 0, &ctx)) &&
           REFUSED(p, gshmem_ctx_create(1 << 20, &ctx)) &&
           REFUSED(p, gshmem_pe_quiet(NULL, 2)) &&
           REFUSED(p, gshmem_set_lock((long *)(void *)local)) &&
           REFUSED(p, gshmem_buffer_unregister(local)) &&
           REFUSED(p, gshmem_buffer_register(NULL, 8)) &&
           TRY(p, gshmem_init()) && TRY(p, gshmem_finalize()); /* which nest */
}
