#include "runtime/stats/stats.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"

const uint8_t stats_class[64] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7,
                                 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
_Thread_local struct stats_held stats_held;
unsigned stats_begun; /* jobs of this process; changed only where there is no job */

/* ---- Blocks ---- */

static struct stats_block *make_block(struct stats *s, bool peers)
{
    struct stats_block *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);

    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    /* calloc: pages of peers that this block is never used for cost addresses only */
    if (peers && !(b->peer = calloc((size_t)s->n_pes + 1, sizeof *b->peer))) {
        free(b);
        return NULL;
    }
    b->stats = s;
    b->next = s->all;
    return s->all = b;
}

struct stats_block *stats_new_block(struct stats *s, bool peers)
{
    pthread_mutex_lock(&s->lock);
    struct stats_block *b = make_block(s, peers);
    pthread_mutex_unlock(&s->lock);
    return b;
}

/* The next thread that needs a block goes on counting in this one. */
static void give_back(void *block)
{
    struct stats_block *b = block;
    struct stats *s = b->stats;

    stats_held.of = 0; /* a destructor that runs later takes another block */
    pthread_mutex_lock(&s->lock);
    b->next_free = s->unused;
    s->unused = b;
    pthread_mutex_unlock(&s->lock);
}

struct stats_block *stats_take_block(struct stats *s)
{
    pthread_mutex_lock(&s->lock);
    struct stats_block *b = s->unused;
    if (b)
        s->unused = b->next_free;
    else
        b = make_block(s, true);
    pthread_mutex_unlock(&s->lock);
    if (!b) {
        atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
        return NULL; /* and asked again by the next operation */
    }
    if (s->has_key)
        pthread_setspecific(s->key, b);
    stats_held = (struct stats_held){.block = b, .of = stats_begun};
    return b;
}

struct stats *stats_new(int n_pes, bool wanted)
{
    struct stats *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->n_pes = n_pes;
    s->wanted = wanted;
    pthread_mutex_init(&s->lock, NULL);
    s->has_key = pthread_key_create(&s->key, give_back) == 0;
    if (!(s->network = make_block(s, true)) || !(s->proxy = make_block(s, false))) {
        stats_free(s);
        return NULL;
    }
    stats_begun++;
    return s;
}

void stats_free(struct stats *s)
{
    if (!s)
        return;
    stats_begun++; /* no thread of the program takes its block for one of the next job */
    if (s->has_key)
        pthread_key_delete(s->key);
    for (struct stats_block *b = s->all, *next; b; b = next) {
        next = b->next;
        free(b->peer);
        free(b);
    }
    pthread_mutex_destroy(&s->lock);
    free(s->base);
    free(s->file);
    free(s);
}

void stats_leave_parent(struct stats *s)
{
    if (s->has_key)
        pthread_setspecific(s->key, NULL); /* a thread of the parent may have had the lock */
}

/* ---- Calls ---- */

enum { NESTED_MOST = 16, NAMES_KEPT = 32 };

/* The calls that this thread is in; and what it has named lately, by the address of the text: names
 * are constants, as a rule. */
static _Thread_local struct {
    unsigned of; /* as in stats_held */
    unsigned depth;
    struct {
        int call; /* -1: it is not counted */
        uint64_t since;
    } nested[NESTED_MOST];
    struct {
        const char *text;
        int call;
    } kept[NAMES_KEPT];
} in;

static int stats_find_call(const struct stats *s, const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        if (strncmp(s->call[i], name, STATS_CALL_BYTES - 1) == 0)
            return i;
    }
    return -1;
}

/* -1: there are too many names. */
static int enter_call(struct stats *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    const int n = atomic_load_explicit(&s->calls, memory_order_relaxed);
    int i = stats_find_call(s, name, n);
    if (i < 0 && n < STATS_CALLS) {
        i = n;
        strncpy(s->call[i], name, STATS_CALL_BYTES - 1);
        /* release: pairs with the acquire in call_of */
        atomic_store_explicit(&s->calls, n + 1, memory_order_release);
    }
    pthread_mutex_unlock(&s->lock);
    return i;
}

static int call_of(struct stats *s, const char *name)
{
    const unsigned at = (unsigned)((uintptr_t)name >> 2) % NAMES_KEPT;

    /* the same address may have another text by now, if the program composed it */
    if (in.kept[at].text == name && in.kept[at].call >= 0 &&
        strncmp(s->call[in.kept[at].call], name, STATS_CALL_BYTES - 1) == 0)
        return in.kept[at].call;
    int call = stats_find_call(s, name, atomic_load_explicit(&s->calls, memory_order_acquire));
    if (call < 0)
        call = enter_call(s, name);
    in.kept[at].text = name;
    in.kept[at].call = call;
    return call;
}

void stats_call_begin(struct stats *s, const char *name)
{
    if (in.of != stats_begun) {
        memset(&in, 0, sizeof in);
        in.of = stats_begun;
    }
    const unsigned depth = in.depth++;
    if (depth >= NESTED_MOST)
        return;
    in.nested[depth].call = call_of(s, name);
    in.nested[depth].since = clock_ns();
}

void stats_call_end(struct stats *s)
{
    if (in.of != stats_begun || in.depth == 0)
        return; /* it was begun before the job */
    const unsigned depth = --in.depth;
    const int call = depth < NESTED_MOST ? in.nested[depth].call : -1;
    struct stats_block *b = stats_mine(s);
    if (b && call < 0)
        stats_add(b, STATS_LOST, 1);
    if (!b || call < 0)
        return;
    stats_more(&b->value[STATS_COUNTERS_END + call], 1);
    stats_more(&b->value[STATS_CALLS_NS + call], clock_ns() - in.nested[depth].since);
}

/* ---- Sums ---- */

/* With the lock held. */
static void add_up(const struct stats *s, struct stats_sums *to)
{
    memset(to, 0, stats_sums_bytes(s->n_pes));
    to->counts_all = s->wanted;
    memcpy(to->call, s->call, sizeof to->call);
    for (const struct stats_block *b = s->all; b; b = b->next) {
        for (int i = 0; i < STATS_VALUES; i++)
            to->value[i] += atomic_load_explicit(&b->value[i], memory_order_relaxed);
        for (int i = 0; b->peer && i <= s->n_pes; i++) {
            const struct stats_peer *p = &b->peer[i];
            to->peer[i].operations += atomic_load_explicit(&p->operations, memory_order_relaxed);
            to->peer[i].bytes += atomic_load_explicit(&p->bytes, memory_order_relaxed);
            to->peer[i].ns += atomic_load_explicit(&p->ns, memory_order_relaxed);
        }
    }
    to->value[STATS_LOST] += atomic_load_explicit(&s->lost, memory_order_relaxed);
}

void stats_sum(struct stats *s, struct stats_sums *to)
{
    pthread_mutex_lock(&s->lock);
    const struct stats_sums *base = s->base;
    add_up(s, to);
    for (int i = 0; base && i < STATS_VALUES; i++)
        to->value[i] -= base->value[i];
    for (int i = 0; base && i <= s->n_pes; i++) {
        to->peer[i].operations -= base->peer[i].operations;
        to->peer[i].bytes -= base->peer[i].bytes;
        to->peer[i].ns -= base->peer[i].ns;
    }
    pthread_mutex_unlock(&s->lock);
}

/* The counts themselves go on, since each belongs to its thread. */
gshmem_status_t stats_reset(struct stats *s)
{
    struct stats_sums *now = malloc(stats_sums_bytes(s->n_pes));

    if (!now)
        return fail(GSHMEM_ERR_MEMORY, "gshmem_stats_reset: out of memory for the counts of %d PEs",
                    s->n_pes);
    pthread_mutex_lock(&s->lock);
    add_up(s, now);
    free(s->base);
    s->base = now;
    pthread_mutex_unlock(&s->lock);
    return GSHMEM_OK;
}
