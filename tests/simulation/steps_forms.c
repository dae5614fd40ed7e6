/* Steps of the wide workload that try forms: waits and tests of arrays, atomics of all types and
 * operations, blocks, single elements, contexts of teams, orders of a few PEs, queries. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "program.h"
#include "record.h"
#include "runtime/base/clock.h"
#include "runtime/job/extensions.h"

enum { TESTS_MOST = 3000 };

static int form_pe(struct program *p)
{
    return (int)chance_below(&p->chance, (uint64_t)p->n);
}

static unsigned char *own_slot(struct program *p)
{
    return p->slots + (size_t)p->me * p->slot_bytes;
}

/* This PE's slot of a target becomes free for a step that looks after it itself. */
static bool begin_slot(struct program *p, int target)
{
    if (!TRY(p, gshmem_quiet()) || !model_check_written(p, "quiet"))
        return false;
    p->written[target] = p->checked[target] = 0;
    return true;
}

/* ---- Waits ---- */

static size_t bytes_of(enum gshmem_type type)
{
    static const unsigned char bytes[] = {1, 2, 4, 8, 1, 2, 4, 8};

    return bytes[type];
}

static bool came(size_t n)
{
    return n < VALUE_WORDS;
}

/* By some form, until all elements have come; which of them have is in `status`. */
static bool wait_by(struct program *p, enum gshmem_type type, const void *at, const void *due,
                    bool vector)
{
    size_t at_once[VALUE_WORDS], left = VALUE_WORDS, got = 0;
    int status[VALUE_WORDS] = {0};
    const uint64_t form = chance_below(&p->chance, 6);

    if (form == 0)
        return TRY(p, gshmem_path_wait_all(type, at, left, status, GSHMEM_CMP_EQ, due, vector));
    for (int tries = 0; left; tries++) {
        if (form == 1) {
            int all;
            if (!TRY_VALUE(p, &all, gshmem_path_test_all(type, at, VALUE_WORDS, status,
                                                         GSHMEM_CMP_EQ, due, vector)))
                return false;
            got = all ? left : 0;
            left -= got;
        } else if (form == 2 || form == 3) {
            if (form == 2 ? !TRY_VALUE(p, &got, gshmem_path_wait_any(type, at, VALUE_WORDS, status,
                                                                     GSHMEM_CMP_EQ, due, vector))
                          : !TRY_VALUE(p, &got, gshmem_path_test_any(type, at, VALUE_WORDS, status,
                                                                     GSHMEM_CMP_EQ, due, vector)))
                return false;
            if (came(got)) {
                status[got] = 1;
                left--;
            }
        } else {
            if (form == 4
                    ? !TRY_VALUE(p, &got,
                                 gshmem_path_wait_some(type, at, VALUE_WORDS, at_once, status,
                                                       GSHMEM_CMP_EQ, due, vector))
                    : !TRY_VALUE(p, &got,
                                 gshmem_path_test_some(type, at, VALUE_WORDS, at_once, status,
                                                       GSHMEM_CMP_EQ, due, vector)))
                return false;
            for (size_t i = 0; i < got; i++) {
                if (!came(at_once[i]) || status[at_once[i]]) {
                    world_fail("PE %d: a wait names element %zu twice", p->me, at_once[i]);
                    return false;
                }
                status[at_once[i]] = 1;
            }
            left -= got;
        }
        if (form % 2 && judge.allowed && tries > TESTS_MOST) { /* of a PE that may have failed */
            p->failed = GSHMEM_ERR_TIMEOUT;
            return false;
        }
        if (form % 2)
            clock_sleep(chance_below(&p->chance, 2 * MS));
    }
    return true;
}

/* The PE before stores a new value of the type into each element. */
bool step_waits(struct program *p)
{
    const int next = (p->me + 1) % p->n;

    for (uint64_t n = 1 + chance_below(&p->common, 3); n; n--) {
        const uint64_t round = ++p->values % 100 + 1;
        const enum gshmem_type type = 1 + (enum gshmem_type)chance_below(&p->common, 7);
        const size_t bytes = bytes_of(type == GSHMEM_TYPE_UINT8 ? GSHMEM_TYPE_INT16 : type);
        const enum gshmem_type waits = type == GSHMEM_TYPE_UINT8 ? GSHMEM_TYPE_INT16 : type;
        const bool vector = chance_one_in(&p->common, 2);
        unsigned char due[VALUE_WORDS * 8] = {0};
        for (size_t i = 0; i < VALUE_WORDS; i++) {
            memcpy(due + i * bytes, &round, bytes);
            if (!TRY(p, gshmem_path_put(GSHMEM_CTX_DEFAULT, p->area->typed[waits] + i * bytes,
                                        due + i * bytes, bytes, next, chance_one_in(&p->chance, 2))))
                return false;
        }
        if (!TRY(p, gshmem_quiet()) ||
            !wait_by(p, waits, p->area->typed[waits], due, vector) ||
            !TRY_ALL(p, gshmem_barrier_all()))
            return false;
    }
    return true;
}

/* ---- Atomics ---- */

static uint64_t applied(enum gshmem_amo op, uint64_t was, uint64_t operand, uint64_t compare)
{
    switch (op) {
    case GSHMEM_AMO_ADD:
        return was + operand;
    case GSHMEM_AMO_AND:
        return was & operand;
    case GSHMEM_AMO_OR:
        return was | operand;
    case GSHMEM_AMO_XOR:
        return was ^ operand;
    case GSHMEM_AMO_SWAP:
        return operand;
    case GSHMEM_AMO_COMPARE_SWAP:
        return was == compare ? operand : was;
    default:
        return was;
    }
}

/* On an object that no other PE updates: each old value is known. */
bool step_amos(struct program *p)
{
    static const enum gshmem_type types[] = {GSHMEM_TYPE_INT32, GSHMEM_TYPE_INT64,
                                             GSHMEM_TYPE_UINT32, GSHMEM_TYPE_UINT64};
    const enum gshmem_type type = types[chance_below(&p->chance, 4)];
    const uint64_t mask = bytes_of(type) == 4 ? UINT32_MAX : UINT64_MAX;
    const int target = form_pe(p);
    uint64_t value = chance_next(&p->chance) & mask, got;
    void *object = own_slot(p);

    if (!begin_slot(p, target) ||
        !TRY(p, gshmem_path_put(GSHMEM_CTX_DEFAULT, object, &value, bytes_of(type), target, 0)) ||
        !TRY(p, gshmem_quiet()))
        return false;
    for (uint64_t n = 1 + chance_below(&p->chance, 12); n; n--) {
        static const enum gshmem_amo ops[] = {GSHMEM_AMO_ADD,  GSHMEM_AMO_AND,
                                              GSHMEM_AMO_OR,   GSHMEM_AMO_XOR,
                                              GSHMEM_AMO_SWAP, GSHMEM_AMO_COMPARE_SWAP};
        const enum gshmem_amo op = ops[chance_below(&p->chance, 6)];
        const uint64_t operand = chance_next(&p->chance) & mask;
        const uint64_t compare = chance_one_in(&p->chance, 2) ? value : operand;
        const uint64_t way = chance_below(&p->chance, 3);
        uint64_t *old = way ? &got : NULL;

        got = 0;
        if (op == GSHMEM_AMO_COMPARE_SWAP && !old)
            old = &got;
        if (way == 2 ? !TRY(p, gshmem_path_atomic_fetch(GSHMEM_CTX_DEFAULT, op, (int)type, object,
                                                        operand, compare, old, target)) ||
                           !TRY(p, gshmem_quiet())
                     : !TRY(p, gshmem_path_atomic(GSHMEM_CTX_DEFAULT, op, (int)type, object,
                                                  operand, compare, old, target)))
            return false;
        if (old && (got & mask) != value && model_can_get(p, target)) {
            world_fail("PE %d: atomic %d of type %d at PE %d returned %llx, not %llx", p->me, op,
                       type, target, (unsigned long long)got, (unsigned long long)value);
            return false;
        }
        value = applied(op, value, operand, compare) & mask;
    }
    return true;
}

/* ---- Data ---- */

/* Blocks with gaps, there and back. */
bool step_blocks(struct program *p)
{
    const int target = form_pe(p);
    const size_t block = chance_between(&p->chance, 1, 4), element = 8,
                 n = chance_between(&p->chance, 1, 6);
    const ptrdiff_t gap = (ptrdiff_t)(block + chance_below(&p->chance, 3));
    uint64_t source[64], got[64] = {0};

    model_fill(source, sizeof source, chance_next(&p->chance));
    if (!begin_slot(p, target) ||
        !TRY(p, gshmem_ctx_ibputmem(GSHMEM_CTX_DEFAULT, own_slot(p), source, gap, gap, block,
                                    element, n, target)) ||
        !TRY(p, gshmem_quiet()) ||
        !TRY(p, gshmem_ctx_ibgetmem(GSHMEM_CTX_DEFAULT, got, own_slot(p), gap, gap, block, element,
                                    n, target)))
        return false;
    for (size_t i = 0; i < n * block; i++) {
        const size_t at = i / block * (size_t)gap + i % block;
        if (got[at] != source[at] && model_can_get(p, target)) {
            world_fail("PE %d: element %zu of blocks at PE %d is wrong", p->me, at, target);
            return false;
        }
    }
    return true;
}

/* Single elements of all sizes, their signal, and an order of these PEs alone. */
bool step_elements(struct program *p)
{
    const int target = form_pe(p), two[] = {target, p->me};
    unsigned char *own = own_slot(p);
    struct {
        signed char c;
        short s;
        int i;
        float f;
        double d;
    } v = {(signed char)chance_below(&p->chance, 100), (short)chance_below(&p->chance, 9999),
           (int)chance_below(&p->chance, 1 << 30), (float)chance_below(&p->chance, 1000), 0.25},
      g = {0};

    if (!begin_slot(p, target) || !TRY(p, gshmem_schar_p((signed char *)own, v.c, target)) ||
        !TRY(p, gshmem_short_p((short *)(own + 8), v.s, target)) ||
        !TRY(p, gshmem_int_p((int *)(own + 16), v.i, target)) ||
        !TRY(p, gshmem_float_p((float *)(own + 24), v.f, target)) ||
        !TRY(p, gshmem_double_p((double *)(own + 32), v.d, target)) ||
        !TRY(p, gshmem_ctx_signal_set(GSHMEM_CTX_DEFAULT, (uint64_t *)(own + 40), 7, target)) ||
        !TRY(p, gshmem_signal_op((uint64_t *)(own + 40), 3, GSHMEM_SIGNAL_ADD, target)) ||
        !TRY(p, gshmem_pe_quiet(two, chance_below(&p->chance, 2) + 1)) ||
        !TRY_VALUE(p, &g.c, gshmem_schar_g((signed char *)own, target)) ||
        !TRY_VALUE(p, &g.s, gshmem_short_g((short *)(own + 8), target)) ||
        !TRY_VALUE(p, &g.i, gshmem_int_g((int *)(own + 16), target)) ||
        !TRY_VALUE(p, &g.f, gshmem_float_g((float *)(own + 24), target)) ||
        !TRY_VALUE(p, &g.d, gshmem_double_g((double *)(own + 32), target)))
        return false;
    uint64_t signal;
    if (!TRY_VALUE(p, &signal, gshmem_uint64_g((uint64_t *)(own + 40), target)))
        return false;
    if (model_can_get(p, target) && (g.c != v.c || g.s != v.s || g.i != v.i ||
                                     (int)g.f != (int)v.f || g.d < v.d || signal != 10)) {
        world_fail("PE %d: an element at PE %d is wrong", p->me, target);
        return false;
    }
    return true;
}

/* A context of a team: its PEs are the team's. */
bool step_team_context(struct program *p)
{
    const bool odd = chance_one_in(&p->common, 2);
    gshmem_team_t team = GSHMEM_TEAM_INVALID, of = GSHMEM_TEAM_INVALID;
    int members[1024], mine = -1, n = 0;
    gshmem_ctx_t ctx;

    /* the PEs backwards: numbers in the team are others than in the job */
    for (int pe = p->n - 1; pe >= 0; pe -= 1 + odd) {
        if (pe == p->me)
            mine = n;
        members[n++] = pe;
    }
    if (!TRY_ALL(p, gshmem_team_split_list(GSHMEM_TEAM_WORLD, members, n, NULL, 0, &team)))
        return false;
    if (mine < 0)
        return true;
    const int to = (int)chance_below(&p->chance, (uint64_t)n), target = members[to];
    if (!begin_slot(p, target) ||
        !TRY(p, gshmem_team_create_ctx(team, chance_below(&p->chance, 2) * GSHMEM_CTX_SERIALIZED,
                                       &ctx)))
        return false;
    gshmem_ctx_session_start(ctx, 0);
    unsigned char *due = p->expected + (size_t)target * p->slot_bytes;
    model_fill(due, 1000, chance_next(&p->chance));
    bool fine = TRY(p, gshmem_ctx_get_team(ctx, &of)) &&
                TRY(p, gshmem_ctx_putmem_nbi(ctx, own_slot(p), due, 500, to)) &&
                TRY(p, gshmem_ctx_fence(ctx)) &&
                TRY(p, gshmem_ctx_putmem(ctx, own_slot(p) + 500, due + 500, 500, to));
    gshmem_ctx_session_stop(ctx);
    p->written[target] = 1000;
    if (of != team && fine)
        world_fail("PE %d: a context's team is %d, not %d", p->me, of, team);
    fine = fine && TRY(p, gshmem_ctx_pe_quiet(ctx, &to, 1)) &&
           model_check_written(p, "a quiet of one PE");
    fine = TRY(p, gshmem_ctx_quiet(ctx)) && fine;
    fine = (chance_one_in(&p->chance, 2) ? TRY(p, gshmem_ctx_destroy(ctx))
                                         : TRY(p, gshmem_path_close_contexts(team))) &&
           fine;
    return TRY(p, gshmem_team_destroy(team)) && fine;
}

/* ---- Queries ---- */

bool step_queries(struct program *p)
{
    const int pe = form_pe(p);
    gshmem_team_config_t config = {0};
    char name[64];
    int major = -1, minor = -1;
    void *there = gshmem_ptr(p->slots, pe);

    gshmem_info_get_name(name);
    gshmem_info_get_version(&major, &minor);
    if (!name[0] || major < 0 || gshmem_my_pe() != p->me || gshmem_n_pes() != p->n ||
        gshmem_team_my_pe(GSHMEM_TEAM_WORLD) != p->me || !gshmem_pe_accessible(pe) ||
        !gshmem_addr_accessible(p->slots, pe) || gshmem_addr_accessible(name, pe) ||
        gshmem_pe_accessible(p->n) || gshmem_query_thread() != GSHMEM_THREAD_MULTIPLE ||
        (there && there != gshmem_team_ptr(GSHMEM_TEAM_WORLD, p->slots, pe)) ||
        (there && model_can_get(p, pe) && there != (pe == p->me ? p->slots : there))) {
        world_fail("PE %d: a query about PE %d is answered wrongly", p->me, pe);
        return false;
    }
    return TRY(p, gshmem_team_get_config(GSHMEM_TEAM_WORLD, 0, &config));
}
