/* Rounds: how the members of a team synchronize in kernels, and send each other small data.
 *
 * A round ends for a member when it has been notified of all members, directly or through others:
 * all have arrived, and have made the same call.
 *
 * - In a small team each member notifies every other one.
 * - In a larger team of n members there are log2 n steps, rounded up. In step k a member notifies
 *   the member 2^k places after it, once the member 2^(k-1) places before it has notified it. Link
 *   k always comes from the same member; therefore a word has one writer.
 *
 * A notification contains the round's number and a signature of the call, or 0 if the member cannot
 * make the call or has received a different signature. Either way all members learn of a
 * difference. In step k, the notifier's word covers the 2^k members up to the notifier. After this
 * step a member therefore knows whether the 2^(k+1) members up to itself agree; after the last
 * step, whether all members do.
 *
 * The data of a round is put into the receiver's buffer for it before the word (put_signal). It
 * comes from the sender's own buffer. Therefore no member waits until its data is sent.
 *
 * Invariant: words and buffers exist twice, for even and odd rounds, and that is enough.
 *
 * 1. A member in round r + 2 has completed r + 1, at which all members had to arrive.
 * 2. They arrived after they had completed r: after they had read what was sent to them there.
 * 3. The members to which it sent in r have completed r, too. Therefore everything that it sent in
 *    r has arrived.
 *
 * For the same reasons both halves are free between two rounds without data
 * (tests/model/rounds.pml). */
#ifndef GSHMEM_DEVICE_ROUND_H
#define GSHMEM_DEVICE_ROUND_H

#include "gshmem/device/rma.h"
#include "gshmem/device/team.h"

/* In a team of at most this many members, each member notifies every other one. This takes one
 * latency instead of several, and sends more words. All modules of a job need the same value. Tests
 * set a smaller one, to have steps with few PEs. */
#ifndef GSHMEM_ROUND_FLAT
#define GSHMEM_ROUND_FLAT 8
#endif

/* The data of a round: from the root to all; a block from each member for all; a block from each
 * member for each. Block i of the buffer holds the data of the member i places before this
 * one; block 0 is this member's own, stored before the round. With GSHMEM_BRINGS_EACH (flat rounds
 * only), block n + i is sent to the member i places after this one. */
enum gshmem_brings {
    GSHMEM_BRINGS_NOTHING,
    GSHMEM_BRINGS_ROOT,
    GSHMEM_BRINGS_ALL,
    GSHMEM_BRINGS_EACH,
};

struct gshmem_kernel_round {
    const struct gshmem_device_team *team;
    uint32_t number;
    uint32_t signature; /* 0: this PE cannot make the call */
    enum gshmem_brings brings;
    int root;
    size_t bytes;   /* of a block */
    uint64_t *word; /* the words of this round, [link] */
    char *data;     /* this round's buffer */
};

struct gshmem_kernel_link {
    uint32_t to; /* the member that is notified */
    size_t from_offset, to_offset, bytes;
};

GSHMEM_KERNEL bool gshmem_kernel_flat(const struct gshmem_device_team *t)
{
    return t->ctx.n_pes <= GSHMEM_ROUND_FLAT;
}

/* The member `distance` after this one. */
GSHMEM_KERNEL uint32_t gshmem_kernel_after(const struct gshmem_device_ctx *c, uint32_t distance)
{
    uint32_t pe = (uint32_t)c->my_pe + distance;

    return pe < (uint32_t)c->n_pes ? pe : pe - (uint32_t)c->n_pes;
}

GSHMEM_KERNEL uint32_t gshmem_kernel_links(uint32_t n)
{
    uint32_t links = 0;

    if (n <= GSHMEM_ROUND_FLAT)
        return n - 1;
    while (UINT32_C(1) << links < n)
        links++;
    return links;
}

GSHMEM_KERNEL struct gshmem_kernel_link gshmem_kernel_link(const struct gshmem_kernel_round *r,
                                                           uint32_t k)
{
    const struct gshmem_device_ctx *c = &r->team->ctx;
    const uint32_t n = (uint32_t)c->n_pes;
    const bool flat = n <= GSHMEM_ROUND_FLAT;
    const uint32_t distance = flat ? k + 1 : UINT32_C(1) << k;
    const uint32_t has = flat ? 1 : distance; /* how many blocks this member has; or how many
                                                 members, from the root on, have the data */
    struct gshmem_kernel_link link = {};

    link.to = gshmem_kernel_after(c, distance);
    if (r->brings == GSHMEM_BRINGS_ROOT) {
        uint32_t after_root = (uint32_t)c->my_pe - (uint32_t)r->root;
        if (c->my_pe < r->root)
            after_root += n;
        link.bytes = after_root < has && after_root + distance < n ? r->bytes : 0;
    } else if (r->brings == GSHMEM_BRINGS_ALL) {
        link.to_offset = distance * r->bytes;
        link.bytes = (has < n - distance ? has : n - distance) * r->bytes;
    } else if (r->brings == GSHMEM_BRINGS_EACH) {
        link.from_offset = (n + distance) * r->bytes;
        link.to_offset = distance * r->bytes;
        link.bytes = r->bytes;
    }
    return link;
}

/* The next round; all threads that take part call it, after they have synchronized. */
GSHMEM_KERNEL struct gshmem_kernel_round gshmem_kernel_round(const struct gshmem_device_team *t,
                                                             uint32_t signature)
{
    struct gshmem_kernel_round r = {};

    r.team = t;
    r.number = (uint32_t)(gshmem_device_load(&t->rounds->last) + 1);
    r.signature = signature;
    r.word = t->sync->word[r.number & 1];
    r.data = (char *)(t->sync + 1) + (r.number & 1) * t->sync_data;
    return r;
}

/* Sends the word to the member at the other end, and with it the data if the data goes through the
 * proxy. The member sees the word after everything that this thread, and the threads with which it
 * has synchronized, wrote before. It is a put of 0 bytes rather than a signal alone, because a
 * signal alone would not publish what was written. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_tell(const struct gshmem_kernel_round *r, uint32_t k,
                                                 uint32_t signature)
{
    const struct gshmem_device_ctx *c = &r->team->ctx;
    const struct gshmem_kernel_link link = gshmem_kernel_link(r, k);
    const uint64_t say = (uint64_t)r->number << 32 | signature;
    uint64_t *there =
        (uint64_t *)gshmem_kernel_reach(c, &r->word[k], sizeof *r->word, (int)link.to);

    if (there) {
        gshmem_store_release(there, say); /* pairs with the acquire in
                                            gshmem_kernel_receive */
        return GSHMEM_OK;
    }
    struct gshmem_command signal =
        gshmem_kernel_signal_command(&r->word[k], say, GSHMEM_SIGNAL_SET);
    signal.pe = (uint32_t)c->world[link.to];
    return gshmem_kernel_post_put<true>(c, r->data + link.to_offset, r->data + link.from_offset,
                                        link.bytes, &signal, (int)link.to);
}

/* Waits for the word of link k, and returns its signature; what its sender wrote before is then
 * visible. After a failure it polls once more, since a member that has left, or died, may have sent
 * its word before. */
GSHMEM_KERNEL gshmem_status_t gshmem_kernel_receive(const struct gshmem_kernel_round *r, uint32_t k,
                                                 uint32_t *signature)
{
    const struct gshmem_device_team *t = r->team;
    struct gshmem_kernel_wait w = {};
    gshmem_status_t status = GSHMEM_OK;
    uint64_t word;

    gshmem_kernel_wait_is_for(&w, GSHMEM_SHOWN_COLLECTIVE, &r->word[k]);
    /* acquire: pairs with the release in gshmem_kernel_tell, or of the agent that carries out a
     * put_signal */
    while ((word = gshmem_load_acquire(&r->word[k])) >> 32 != r->number && !status) {
        /* acquire: pairs with the release in kernels_look_after */
        if (gshmem_kernel_wait_step(&w, t->failure))
            status = (gshmem_status_t)gshmem_failure_status(gshmem_load_acquire(t->failure));
        else if (w.turns % GSHMEM_TURNS_LONG == 0)
            gshmem_store_relaxed(t->waiting, (uint64_t)r->number);
    }
    if (w.turns >= GSHMEM_TURNS_LONG)
        gshmem_store_relaxed(t->waiting, 0);
    gshmem_kernel_waited();
    *signature = (uint32_t)word;
    return word >> 32 == r->number ? GSHMEM_OK : status;
}

/* Stores the data of some links at members whose memory is mapped. All threads call it. */
template <int scope>
GSHMEM_KERNEL void gshmem_kernel_bring(const struct gshmem_kernel_round *r, uint32_t first,
                                       uint32_t end)
{
    for (uint32_t k = first; k < end; k++) {
        const struct gshmem_kernel_link link = gshmem_kernel_link(r, k);
        void *there =
            gshmem_kernel_reach(&r->team->ctx, r->data + link.to_offset, link.bytes, (int)link.to);
        if (there && link.bytes)
            gshmem_kernel_copy<scope>(there, r->data + link.from_offset, link.bytes);
    }
    gshmem_kernel_sync<scope>();
}

/* Has the proxy log what is wrong, as the host's calls do: one line. */
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_fault(gshmem_team_t team, uint32_t collective,
                                                       uint32_t fault, const void *address,
                                                       uint64_t size)
{
    struct gshmem_command command = {};

    command.kind = GSHMEM_COMMAND_REFUSE_COLLECTIVE;
    command.type = collective;
    command.amo = fault;
    command.address = (uint64_t)(uintptr_t)address;
    command.local = (uint64_t)(int64_t)team;
    command.size = size;
    command.raises = fault == GSHMEM_FAULT_LEFT;
    return gshmem_kernel_ask(&gshmem_device_here.ctx, &command, NULL, NULL);
}

/* Logs why a round failed, if that has not been logged; by one thread. */
GSHMEM_KERNEL_RARE void gshmem_kernel_explain(const struct gshmem_device_team *t,
                                              uint32_t collective, gshmem_status_t status)
{
    if (status == GSHMEM_ERR_MISMATCH) {
        gshmem_kernel_fault(t->ctx.team, collective, GSHMEM_FAULT_OTHERS, NULL, 0);
    } else if (status == GSHMEM_ERR_PEER_DEAD) {
        const uint64_t failure = gshmem_load_relaxed(t->failure);
        if (gshmem_failure_way(failure))
            gshmem_kernel_fault(t->ctx.team, collective, GSHMEM_FAULT_LEFT, NULL, failure);
    }
}

/* Called when all threads have received what they wait for. What was written before it is then
 * visible to all of them. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_settle_all(gshmem_status_t status)
{
    status = gshmem_kernel_agree<scope>(status);
    if (!status && gshmem_kernel_rank<scope>() == 0)
        status = gshmem_kernel_settle();
    return gshmem_kernel_agree<scope>(status);
}

/* One round. It is also a sync of the threads, which see the received data. `mine` is the caller's
 * status so far: it is the result unless a worse one comes. Out of line, like everything that does
 * not depend on types: a call costs little beside the wait, and there are many reductions. */
template <int scope>
GSHMEM_KERNEL_RARE gshmem_status_t gshmem_kernel_meet(const struct gshmem_kernel_round *r,
                                                      gshmem_status_t mine)
{
    const struct gshmem_device_team *t = r->team;
    const uint32_t links = gshmem_kernel_links((uint32_t)t->ctx.n_pes);
    const uint32_t rank = gshmem_kernel_rank<scope>(), threads = gshmem_kernel_size<scope>();
    gshmem_status_t status = GSHMEM_OK;
    uint32_t signature = r->signature;

    gshmem_kernel_sync<scope>();
    if (rank == 0)
        t->rounds->last = r->number;
    for (uint32_t first = 0, end; first < links && !status; first = end) {
        end = gshmem_kernel_flat(t) ? links : first + 1;
        if (r->brings != GSHMEM_BRINGS_NOTHING)
            gshmem_kernel_bring<scope>(r, first, end);
        for (uint32_t k = first + rank; k < end && !status; k += threads)
            status = gshmem_kernel_tell(r, k, signature);
        for (uint32_t k = first + rank; k < end && !status; k += threads) {
            uint32_t received;
            status = gshmem_kernel_receive(r, k, &received);
            if (received != signature)
                signature = 0;
        }
        if (gshmem_device_here.flushes)
            status = gshmem_kernel_settle_all<scope>(status);
        if (end < links)
            status = gshmem_kernel_agree<scope>(status);
    }
    if (!status)
        status = signature || !r->signature ? mine : GSHMEM_ERR_MISMATCH;
    return gshmem_kernel_agree<scope>(status);
}

#endif
