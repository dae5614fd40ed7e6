/* What must be true of the PEs' memory, and of what calls have returned. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "program.h"
#include "record.h"

enum { NUMBERS_MOST = 1 << 16, BARRIERS = STEPS_MOST * 64 };

static struct {
    unsigned char *numbers; /* [target][COUNTERS][NUMBERS_MOST / 8]: those that were given out */
    uint64_t *given;        /* [target][COUNTERS] */
    uint64_t *sum, *bits;   /* [target] */
    uint64_t tokens_out, tokens_in;
    unsigned char *token; /* bits of those that have come out */
    int in_section, sections; /* the PE that has the lock, + 1 */
    int arrived[BARRIERS];
} model;

static void model_begin(void)
{
    const size_t n = (size_t)world.n_pes;

    if (model.sum)
        return;
    model.numbers = calloc(n * COUNTERS, NUMBERS_MOST / 8);
    model.given = calloc(n * COUNTERS, sizeof *model.given);
    model.sum = calloc(n, sizeof *model.sum);
    model.bits = calloc(n, sizeof *model.bits);
    model.token = calloc(1, NUMBERS_MOST / 8);
}

struct program *model_peer(const struct program *p, int pe)
{
    return &programs[pe % p->n];
}

void model_fill(void *to, size_t bytes, uint64_t token)
{
    struct chance c = {.state = token * 0x9e3779b97f4a7c15 + 12345};
    unsigned char *at = to;

    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t value = chance_next(&c);
        memcpy(at + i, &value, bytes - i < 8 ? bytes - i : 8);
    }
}

static bool alive(const struct program *p)
{
    return !p->pe->dead && p->area && !p->ended;
}

/* Of a PE of this machine that has left, a load finds what is there now. */
bool model_can_get(const struct program *p, int from)
{
    return alive(&programs[from]) || programs[from].pe->node != p->pe->node;
}

bool model_check_written(struct program *p, const char *after)
{
    for (int t = 0; t < p->n; t++) {
        const struct program *peer = &programs[t];
        const unsigned char *is = peer->slots + (size_t)p->me * p->slot_bytes,
                            *due = p->expected + (size_t)t * p->slot_bytes;
        size_t at = p->checked[t];
        if (at == p->written[t])
            continue;
        p->checked[t] = p->written[t];
        if (!alive(peer) || memcmp(is + at, due + at, p->written[t] - at) == 0)
            continue;
        while (is[at] == due[at])
            at++;
        world_fail("PE %d: after %s byte %zu of what it has written to PE %d is %02x, not %02x",
                   p->me, after, at, t, is[at], due[at]);
        return false;
    }
    return true;
}

/* ---- Once each ---- */

static bool take_bit(unsigned char *bits, uint64_t i)
{
    const bool was = bits[i / 8] >> i % 8 & 1;

    bits[i / 8] |= (unsigned char)(1u << i % 8);
    return was;
}

bool model_number(struct program *p, int target, int counter, uint64_t number)
{
    model_begin();
    const size_t which = (size_t)target * COUNTERS + (size_t)counter;

    if (!model_can_get(p, target))
        return true;
    model.given[which]++;
    if (number < NUMBERS_MOST &&
        !take_bit(model.numbers + which * (NUMBERS_MOST / 8), number))
        return true;
    world_fail("PE %d: fetch_inc of counter %d of PE %d returned %llu, which was returned before",
               p->me, counter, target, (unsigned long long)number);
    return false;
}

uint64_t model_new_token(const struct program *p)
{
    (void)p;
    model_begin();
    return ++model.tokens_in;
}

bool model_token(struct program *p, int target, uint64_t token)
{
    model_begin();
    if (token == 0 || !model_can_get(p, target)) /* 0: the chain's start */
        return true;
    model.tokens_out++;
    if (token < NUMBERS_MOST && token <= model.tokens_in && !take_bit(model.token, token))
        return true;
    world_fail("PE %d: a swap at PE %d returned token %llu, %s", p->me, target,
               (unsigned long long)token,
               token > model.tokens_in ? "which was never stored" : "which was returned before");
    return false;
}

void model_added(int target, uint64_t value)
{
    model_begin();
    model.sum[target] += value;
}

void model_set_bit(int target, uint64_t bit)
{
    model_begin();
    model.bits[target] ^= bit;
}

static bool check_sums_of(struct program *p, int t)
{
    const struct area *a = programs[t].area;

    if (a->sum != model.sum[t]) {
        world_fail("PE %d's sum is %llu, not %llu", t, (unsigned long long)a->sum,
                   (unsigned long long)model.sum[t]);
        return false;
    }
    if (a->bits != model.bits[t]) {
        world_fail("PE %d's bits are %llx, not %llx", t, (unsigned long long)a->bits,
                   (unsigned long long)model.bits[t]);
        return false;
    }
    for (int i = 0; i < COUNTERS; i++) {
        const uint64_t given = model.given[(size_t)t * COUNTERS + (size_t)i];
        if (a->counter[i] == given)
            continue;
        world_fail("PE %d: counter %d of PE %d is %llu after %llu increments", p->me, i, t,
                   (unsigned long long)a->counter[i], (unsigned long long)given);
        return false;
    }
    return true;
}

/* A PE that is behind may be in its next program step already only if there is one: this comes
 * after the last. */
bool model_check_sums(struct program *p)
{
    model_begin();
    if (judge.allowed)
        return true;
    if (alive(&programs[0]) && programs[0].area->guarded != (uint64_t)model.sections) {
        world_fail("the counter under the lock is %llu after %d sections",
                   (unsigned long long)programs[0].area->guarded, model.sections);
        return false;
    }
    for (int t = 0; t < p->n; t++) {
        if (alive(&programs[t]) && !check_sums_of(p, t))
            return false;
    }
    return true;
}

bool model_check_order(const struct program *p)
{
    if (!alive(p) || p->area->ordered[0] >= p->area->ordered[1])
        return true;
    world_fail("PE %d sees store %llu behind a fence before the one in front of it, %llu", p->me,
               (unsigned long long)p->area->ordered[1], (unsigned long long)p->area->ordered[0]);
    return false;
}

/* ---- Mutual exclusion ---- */

bool model_lock_enters(struct program *p)
{
    if (model.in_section && !programs[model.in_section - 1].pe->dead) {
        world_fail("PE %d has the lock, and so has PE %d", p->me, model.in_section - 1);
        return false;
    }
    model.in_section = p->me + 1;
    record("PE %d has the lock", p->me);
    return true;
}

bool model_lock_leaves(struct program *p)
{
    if (model.in_section != p->me + 1) {
        world_fail("PE %d had the lock, and PE %d took it", p->me, model.in_section - 1);
        return false;
    }
    model.in_section = 0;
    model.sections++;
    return true;
}

/* ---- Rounds ---- */

void model_arrive(int barrier)
{
    model.arrived[barrier % BARRIERS]++;
}

bool model_all_came(struct program *p, int barrier)
{
    if (model.arrived[barrier % BARRIERS] >= p->n)
        return true;
    world_fail("PE %d left a barrier to which only %d of %d PEs have come", p->me,
               model.arrived[barrier % BARRIERS], p->n);
    return false;
}
