/* The next work request of a path. Inline, as it is on every request's way. */
#ifndef GSHMEM_TRANSPORT_VERBS_POST_H
#define GSHMEM_TRANSPORT_VERBS_POST_H

#include <string.h>

#include "transport/verbs/link.h"
#include "transport/verbs/nic.h"

struct message;
struct verbs;

/* false: no room */
bool post_message(struct verbs *v, struct path *p, enum work_kind kind, uint32_t op,
                  const struct message *m);
/* Gives the queue pair the batch; false: not all of it, yet. */
bool post_batch(struct verbs *v, struct path *p);

/* Gives the queue pairs of all paths their batches. */
static inline void post_batches(struct verbs *v, struct link *l)
{
    for (int i = 0; i < l->paths; i++) {
        if (l->path[i]->batch.end)
            post_batch(v, l->path[i]);
    }
}

/* The NIC has not taken all of the batch; always false. */
bool post_refused(struct verbs *v, struct path *p, const struct ibv_send_wr *bad, int error);

/* Gives the queue pair a batch that is linked; false: not all of it, yet. */
static inline bool post_collected(struct verbs *v, struct path *p)
{
    struct ibv_send_wr *bad = NULL;
    const int error = ibv_post_send(p->qp, &p->batch.wr[p->batch.first], &bad);

    if (GSHMEM_UNLIKELY(error))
        return post_refused(v, p, bad, error);
    p->batch.first = p->batch.end = 0;
    return true;
}

/* How many bytes of a work request count as in flight (GSHMEM_IB_INFLIGHT): those of puts, gets
 * and batches. Messages, signals and updates are small, and replies must not wait. */
static inline uint64_t post_flight(enum work_kind kind, uint64_t bytes)
{
    return kind == WORK_WRITE || kind == WORK_READ || kind == WORK_RECORDS ? bytes : 0;
}

/* False: the NIC has as many bytes in flight as it may, or other paths have waited for longer.
 * Progress tries again, since a completion of another link may make room. */
bool post_may_fly_more(struct verbs *v, struct path *p, uint64_t bytes);
/* The path does not wait for that any more. */
void post_wait_no_more(struct path *p);
/* The pieces into which a large put or get is cut under a limit: several are in flight at once. */
uint64_t post_flight_piece(const struct nic *nic);

/* NULL: the NIC takes no more work requests now; as above. */
struct ibv_send_wr *post_no_room(struct verbs *v);

static inline bool post_may_fly(struct verbs *v, struct path *p, uint64_t bytes)
{
    return GSHMEM_LIKELY(!p->nic->flight_most) || post_may_fly_more(v, p, bytes);
}

static inline void post_fly(struct nic *nic, uint64_t bytes)
{
    if (GSHMEM_UNLIKELY(nic->flight_most))
        nic->flight += bytes;
}

/* The path's work requests before `end` are no longer in flight. */
static inline void post_landed(struct path *p, uint32_t end)
{
    p->nic->works_left += end - p->done;
    if (GSHMEM_UNLIKELY(p->nic->flight_most)) {
        for (uint32_t i = p->done; i != end; i++) {
            const struct work *w = &p->work[i % SEND_DEPTH];
            p->nic->flight -= post_flight((enum work_kind)w->kind, w->bytes);
        }
    }
    p->done = end;
}

/* Counts and records a work request of one packet while nothing else is in flight by its path, so
 * that few conditions are left; false: something is. */
static inline bool post_begin_alone(struct path *p, enum work_kind kind, uint32_t op,
                                    uint32_t bytes)
{
    if (p->sends != p->done || p->nic->works_left == 0 ||
        GSHMEM_UNLIKELY(p->nic->flight_most != 0)) /* then the general way counts it */
        return false;
    p->nic->works_left--;
    p->work[p->sends++ % SEND_DEPTH] =
        (struct work){.op = op, .packet_end = ++p->packet, .kind = (uint8_t)kind, .bytes = bytes};
    return true;
}

/* That one, as a batch of its own: to be filled in, and given to the queue pair by
 * post_collected. */
static inline struct ibv_send_wr *post_take_alone(struct path *p)
{
    struct ibv_send_wr *wr = p->batch.wr;

    p->batch.end = 1;
    wr->wr_id = p->mark | p->sends;
    wr->next = NULL;
    wr->num_sge = 1;
    wr->send_flags = IBV_SEND_SIGNALED;
    return wr;
}

void post_lone_refused(struct verbs *v, struct path *p, int error);

/* Gives the queue pair p->lone. */
static inline void post_lone(struct verbs *v, struct path *p)
{
    struct ibv_send_wr *bad;
    const int error = ibv_post_send(p->qp, &p->lone.wr, &bad);

    if (GSHMEM_UNLIKELY(error))
        post_lone_refused(v, p, error);
}

/* A work request to be filled in; NULL: there is no room for it now. */
static inline struct ibv_send_wr *post_take(struct verbs *v, struct path *p, enum work_kind kind,
                                            uint32_t op, uint64_t at, uint64_t bytes, uint32_t most)
{
    const uint32_t packets = bytes ? (uint32_t)((bytes - 1) >> p->packet_shift) + 1 : 1;
    /* a read may complete later than what is behind it; on iWARP the completion of that would count
     * for the read too. Of two reads the first completes first */
    const uint32_t read = p->nic->iwarp ? p->fence.last_read : p->fence.read;
    const bool behind_reads = kind != WORK_READ && is_after(read, p->done);

    const uint64_t flight = post_flight(kind, bytes);

    if (p->sends - p->done >= most || p->packet + packets - p->packet_done > PACKETS_MOST)
        return NULL;
    if (GSHMEM_UNLIKELY(p->nic->works_left == 0))
        return post_no_room(v);
    /* soft-RoCE stalls for ever when it repeats a work request with IBV_SEND_FENCE and the response
     * comes at that moment */
    if (behind_reads && p->nic->cannot_fence)
        return NULL;
    if (p->batch.end == BATCH && !post_batch(v, p))
        return NULL;
    if (!post_may_fly(v, p, flight)) /* last: it gives up the path's place among those that wait */
        return NULL;
    p->nic->works_left--;
    p->packet += packets;
    p->work[p->sends % SEND_DEPTH] =
        (struct work){at, op, p->packet, (uint8_t)kind, behind_reads, (uint32_t)bytes};
    post_fly(p->nic, flight);
    p->sends++;

    struct ibv_send_wr *wr = &p->batch.wr[p->batch.end];
    wr->wr_id = p->mark | p->sends;
    wr->num_sge = 1;
    wr->send_flags = behind_reads ? IBV_SEND_FENCE : 0;
    if (p->batch.end != p->batch.first)
        wr[-1].next = wr;
    p->batch.end++;
    return wr;
}

/* For so many bytes of an operation, from `at` on. */
static inline struct ibv_send_wr *post_next(struct verbs *v, struct path *p, enum work_kind kind,
                                            uint32_t op, uint64_t at, uint64_t bytes)
{
    return post_take(v, p, kind, op, at, bytes, p->nic->sends_free);
}

/* For replies and requests for keys, for which some room is kept. */
static inline struct ibv_send_wr *post_next_kept(struct verbs *v, struct path *p,
                                                 enum work_kind kind, uint32_t op, uint64_t bytes)
{
    return post_take(v, p, kind, op, 0, bytes, p->nic->sends_most);
}

/* Its data: inline, or in memory that is kept until it is done. */
static inline void post_within(struct path *p, struct ibv_send_wr *wr, const void *data,
                               uint32_t bytes)
{
    if (bytes <= p->inline_most) {
        *wr->sg_list = (struct ibv_sge){(uintptr_t)data, bytes, 0};
        wr->send_flags |= IBV_SEND_INLINE;
        return;
    }
    struct message_bytes *kept = &p->kept.text[(p->sends - 1) % SEND_DEPTH];
    if (kept->at != data)
        memcpy(kept, data, bytes);
    *wr->sg_list = (struct ibv_sge){(uintptr_t)kept, bytes, p->kept.mr->lkey};
}

#endif
