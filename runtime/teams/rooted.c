/* Rooted rounds. rooted.h has the rules, sync.h the memory. */
#include "runtime/teams/rooted.h"

#include "gshmem/rma.h"
#include "runtime/network/wait.h"
#include "runtime/trace/trace.h"

/* Where root i's data is in this round: on another node's members in their leader's block. */
static inline struct root_slot *rooted_slot_of(const struct group *g, int i)
{
    struct team_sync *sync = g->sync[i];

    if (GSHMEM_UNLIKELY(!sync))
        sync = g->sync[g->leader];
    return &sync->root[(g->round & (ROOTED_EVERY - 1)) - 1];
}

/* The data of that slot. */
static inline char *rooted_data_of(const struct group *g, int i, size_t bytes)
{
    if (GSHMEM_UNLIKELY(bytes > ROOTED_BYTES))
        return g->remote->rooted_data(g, i);
    return rooted_slot_of(g, i)->data;
}

static inline uint64_t word_of(const struct group *g, uint32_t signature)
{
    return (uint64_t)g->round << 32 | signature;
}

/* Never 0, which stands for no rooted rounds. */
static inline uint32_t hash_with(uint32_t earlier, uint32_t signature)
{
    return ((earlier ^ signature) * 0x9e3779b1u) | 1;
}

static inline _Atomic uint64_t *rooted_word_of(const struct group *g, int i)
{
    return &g->sync[i]->rooted[g->round & (ROOTED_EVERY - 1)];
}

static inline void rooted_arrive(struct group *g, uint32_t signature)
{
    g->round++;
    if (GSHMEM_UNLIKELY(g->internode != NULL)) {
        g->remote->arrive(g, signature);
        return;
    }
    /* relaxed: a member that reads it concludes only that this one has arrived */
    atomic_store_explicit(rooted_word_of(g, g->my), word_of(g, signature), memory_order_relaxed);
}

static void trace_rooted(const struct group *g, enum trace_what what, int root, const char *call,
                         gshmem_status_t status)
{
    const bool begins = what == TRACE_ROUND;

    trace_event(what, TRACE_NO_OP, begins ? g->pe[root] : -1,
                trace_round(g->team, g->pe[0], g->round),
                begins ? trace_name(call) : (uint64_t)status, begins ? g->made : 0);
}

gshmem_status_t rooted_give(struct group *g, uint32_t signature, const void *data, size_t bytes,
                            const char *call)
{
    gshmem_status_t status = GSHMEM_OK;

    rooted_arrive(g, signature);
    if (trace_is_on())
        trace_rooted(g, TRACE_ROUND, g->my, call, GSHMEM_OK);
    if (bytes)
        gshmem_copy(rooted_data_of(g, g->my, bytes), data, bytes);
    /* release: pairs with the acquire in rooted_await */
    atomic_store_explicit(&rooted_slot_of(g, g->my)->word, word_of(g, signature),
                          memory_order_release);
    g->earlier = hash_with(g->earlier, signature);
    if (GSHMEM_UNLIKELY(g->internode != NULL))
        status = g->remote->give(g, word_of(g, signature), data, bytes, call);
    if (trace_is_on())
        trace_rooted(g, TRACE_MET, g->my, call, status);
    return status;
}

static gshmem_status_t rooted_fail(struct group *g, gshmem_status_t status, const char *call)
{
    return g->broken = g->internode ? g->remote->break_off(g, status, call) : status;
}

/* The root's word of this round. A failure is followed by one more poll, as in a full round. */
static __attribute__((noinline)) gshmem_status_t
rooted_await(struct group *g, int root, uint32_t signature, const char *call, uint64_t *word)
{
    const struct root_slot *slot = rooted_slot_of(g, root);
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;
    struct rooted_look look = {.mine = word_of(g, signature), .wait = &w};

    /* relaxed, both: for other threads, as in group_begin_round */
    atomic_store_explicit(&g->under_way, call, memory_order_relaxed);
    atomic_store_explicit(&g->awaited, root, memory_order_relaxed);
    wait_begin(&w, call, g->team);
    if (!g->sync[root]) /* no PE of this node can end the wait */
        wait_without_spin(&w);
    /* acquire: pairs with the release in rooted_give, or by which the transport stores a signal */
    while ((*word = atomic_load_explicit(&slot->word, memory_order_acquire)) >> 32 != g->round) {
        if (status) {
            rooted_fail(g, status, call);
            break;
        }
        status = wait_step(&w);
        if (GSHMEM_UNLIKELY(g->internode != NULL) && !status)
            status = g->remote->look(g, root, &look, call);
        if (look.found) {
            *word = look.found;
            break;
        }
    }
    wait_end(&w);
    atomic_store_explicit(&g->awaited, -1, memory_order_relaxed);
    atomic_store_explicit(&g->under_way, NULL, memory_order_relaxed);
    return g->broken;
}

static inline gshmem_status_t rooted_take_data(struct group *g, int root, uint32_t signature,
                                               void *dest, size_t bytes, const char *call)
{
    const struct root_slot *slot = rooted_slot_of(g, root);
    /* acquire: pairs with the release in rooted_give */
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);

    if (word >> 32 != g->round && rooted_await(g, root, signature, call, &word))
        return g->broken;
    if (GSHMEM_UNLIKELY((uint32_t)word != signature)) {
        g->earlier = hash_with(g->earlier, GROUP_MIXED);
        g->mixed = 0; /* what it says of the last full round does not matter here */
        return group_explain_difference(g, signature, root, (uint32_t)word, 0, call);
    }
    if (bytes)
        gshmem_copy(dest, rooted_data_of(g, root, bytes), bytes);
    g->earlier = hash_with(g->earlier, signature);
    return GSHMEM_OK;
}

gshmem_status_t rooted_take(struct group *g, int root, uint32_t signature, void *dest,
                            size_t bytes, const char *call)
{
    rooted_arrive(g, signature);
    if (!trace_is_on())
        return rooted_take_data(g, root, signature, dest, bytes, call);
    trace_rooted(g, TRACE_ROUND, root, call, GSHMEM_OK);
    const gshmem_status_t status = rooted_take_data(g, root, signature, dest, bytes, call);
    trace_rooted(g, TRACE_MET, root, call, status);
    return status;
}

/* Others may be in later rounds already. */
static void forget(const struct group *g, _Atomic uint64_t *word)
{
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);

    if ((int32_t)((uint32_t)(old >> 32) - g->round) < 0)
        atomic_compare_exchange_strong_explicit(word, &old, 0, memory_order_relaxed,
                                                memory_order_relaxed);
}

void rooted_forget(struct group *g)
{
    struct team_sync *at[] = {g->sync[g->my], g->sync[g->internode ? g->leader : g->my]};

    for (int b = 0; b < 2; b++) {
        for (int i = 1; i < ROOTED_EVERY; i++) {
            forget(g, &at[b]->rooted[i]);
            forget(g, &at[b]->root[i - 1].word);
        }
    }
}

/* ---- A full round of some members, and a rooted one of others ---- */

/* Member i's signature, if it has arrived at a rooted round of this number. */
static bool is_rooted_at(const struct group *g, int i, uint32_t *signature)
{
    const uint64_t word = atomic_load_explicit(rooted_word_of(g, i), memory_order_relaxed);

    *signature = (uint32_t)word;
    return i != g->my && word >> 32 == g->round;
}

bool rooted_has_come(const struct group *g, int root)
{
    /* acquire: the caller has seen that the root has left, which it did after its last round */
    return atomic_load_explicit(&rooted_slot_of(g, root)->word, memory_order_acquire) >> 32 ==
           g->round;
}

size_t rooted_word_offset(const struct group *g)
{
    return g->block + offsetof(struct team_sync, root) +
           ((g->round & (ROOTED_EVERY - 1)) - 1) * sizeof(struct root_slot);
}

/* Whether a member of this node has arrived at the rooted round of that number. */
static bool is_rooted_there(const struct group *outer, uint32_t round)
{
    const struct team_sync *sync = outer->sync[outer->leader];

    return atomic_load_explicit(&sync->rooted[round & (ROOTED_EVERY - 1)],
                                memory_order_relaxed) >> 32 == round;
}

bool rooted_instead(const struct group *g)
{
    uint32_t theirs;

    if (g->outer.group)
        return g->outer.entering && is_rooted_there(g->outer.group, g->outer.round);
    for (int i = 0; rooted_is_allowed(g->round) && i < g->n; i++) {
        if (is_rooted_at(g, i, &theirs))
            return true;
    }
    return false;
}

/* Its own word goes into its slot, for members that take it for the root. */
void rooted_count(struct group *g, uint32_t signature)
{
    g->full--;
    g->earlier = hash_with(g->mixed, GROUP_MIXED);
    /* release: pairs with the acquire in rooted_await */
    atomic_store_explicit(&rooted_slot_of(g, g->my)->word, word_of(g, signature),
                          memory_order_release);
}

/* Of members of one node, whose group has no rooted rounds of its own, the round of all nodes
 * turns. */
static gshmem_status_t rooted_turn_part(struct group *g)
{
    g->full--;
    g->outer.turned = true;
    return GSHMEM_ERR_MISMATCH;
}

__attribute__((cold)) gshmem_status_t rooted_turn(struct group *g, uint32_t signature,
                                                  const char *call)
{
    uint32_t theirs;
    int i = 0;

    if (g->outer.group)
        return rooted_turn_part(g);
    while (!is_rooted_at(g, i, &theirs))
        i++;
    rooted_count(g, signature);
    return group_explain_difference(g, signature, i, theirs, 0, call);
}
