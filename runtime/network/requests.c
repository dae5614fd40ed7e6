/* Requests of threads to PEs that are not mapped, from post to completion. */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/job/thread.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/network/wait.h"
#include "runtime/node/node.h"
#include "runtime/trace/trace.h"

static_assert(TRANSPORT_PUT + 1 == (int)TRACE_PUT && TRANSPORT_GET + 1 == (int)TRACE_GET &&
                  TRANSPORT_ATOMIC + 1 == (int)TRACE_ATOMIC,
              "trace_op_of");

/* Both are called by the transport, with the lock held. */
static void depart(void *tag)
{
    struct flight *f = tag;
    struct departure *d = f->departure;

    f->sent = true;
    f->departure = NULL;
    /* release: pairs with the acquire in network_put, which may return and so end the departure's
     * lifetime */
    if (d)
        atomic_store_explicit(&d->gone, true, memory_order_release);
}

__attribute__((noinline)) static void requests_tell(struct flight *f, gshmem_status_t status)
{
    /* Only the lock's holder writes this. A failure that was not reported yet is replaced by a
     * later one: a quiet that saw the earlier one reports it by its number, and cannot take the
     * later one for reported. */
    uint64_t number = (atomic_load_explicit(&f->pending->failed, memory_order_relaxed) >> 32) + 1;
    uint64_t failure = number << 32 | (uint64_t)f->pe << 8 | (uint64_t)status;

    if (status && f->departure)
        f->departure->status = status; /* reported at once, not by the next quiet */
    else if (status)
        atomic_store_explicit(&f->pending->failed, failure, memory_order_relaxed);
    depart(f);
}

static void requests_land(void *tag, gshmem_status_t status)
{
    struct flight *f = tag;
    struct pending *p = f->pending;
    struct network *n = f->network;
    uint64_t landed = 0;

    if (GSHMEM_UNLIKELY(status || f->departure))
        requests_tell(f, status);
    trace_event(TRACE_DONE, TRACE_NO_OP, f->pe, f->id, (uint64_t)status, 0);
    f->landed = true;
    p->landed_from = f->pe;
    for (f = p->first; f && f->landed; f = p->first) {
        p->first = f->next;
        f->next = n->spare;
        n->spare = f;
        landed++;
    }
    /* release: pairs with the acquire in network_quiet: a get's data is in place. Only the lock's
     * holder counts here, and in take_off. */
    atomic_store_explicit(&p->done,
                          atomic_load_explicit(&p->done, memory_order_relaxed) + landed,
                          memory_order_release);
}

static void requests_land_first(void *tag, gshmem_status_t status)
{
    struct flight *f = tag;
    struct landing *l = f->landing;

    f->landing = NULL;
    l->landed(l, status);
    requests_land(f, status);
}

/* Appends a flight in the context's order; NULL: out of memory. */
static inline struct flight *take_off(struct network *n, struct pending *p, int pe,
                                      struct departure *departure)
{
    struct flight *f = n->spare;

    if (GSHMEM_LIKELY(f))
        n->spare = f->next;
    else if (!(f = malloc(sizeof *f)))
        return NULL;
    *f = (struct flight){.network = n, .pending = p, .pe = pe, .departure = departure};
    if (p->first)
        p->last->next = f;
    else
        p->first = f;
    p->last = f;
    atomic_store_explicit(&p->issued, atomic_load_explicit(&p->issued, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return f;
}

/* A failure with memory of a device, here or at the target, is logged by the PE that has the
 * memory. A failed PE has the same status for all calls, however its transport found the
 * failure. */
static gshmem_status_t fail_remote(gshmem_status_t status, int pe, const char *call)
{
    if (status == GSHMEM_ERR_DEVICE || status == GSHMEM_ERR_MEMORY ||
        status == GSHMEM_ERR_UNSUPPORTED || status == GSHMEM_ERR_NOT_SYMMETRIC ||
        status == GSHMEM_ERR_SYSTEM)
        return fail(status,
                    "%s: with PE %d, on another node: %s; a line above, or of that PE, says why",
                    call, pe, gshmem_status_text(status));
    if (this_thread.unheeded)
        return fail_silently(status, "%s: PE %d has left the job, or has died", call, pe);
    return fail(network_lost(job->network, pe) ? GSHMEM_ERR_PEER_DEAD : status,
                "%s: PE %d, on another node, has died or cannot be reached", call, pe);
}

/* ---- Posting ---- */

/* Small operations that were issued before it, and wait in open batches, are posted before it. */
static inline gshmem_status_t requests_hand_over(struct network *n,
                                                 const struct transport_request *r)
{
    if (GSHMEM_UNLIKELY(n->open != NULL) && !(r->flags & TRANSPORT_UNORDERED) &&
        open_batches_post_to(n, r->pe))
        return TRANSPORT_FULL;
    return n->remote->ops->post(n->remote, r);
}

/* Posts it; meanwhile the transport knows the id of the operation. */
static __attribute__((noinline)) gshmem_status_t
requests_post_traced(struct network *n, const struct transport_request *r)
{
    struct flight *f = r->tag;

    trace_operation = f->id;
    const gshmem_status_t status = n->remote->ops->post(n->remote, r);
    trace_operation = 0;
    return status;
}

static __attribute__((noinline)) gshmem_status_t
requests_begin_traced(struct network *n, const struct transport_request *r)
{
    struct flight *f = r->tag;

    f->id = trace_next_id();
    trace_event(TRACE_POSTED, trace_op_of(transport_effect(r)), r->pe, f->id,
                trace_at(r->segment, r->offset), transport_moves(r));
    return requests_post_traced(n, r);
}

gshmem_status_t network_when_there_is_room(struct network *n,
                                           const struct transport_request *request,
                                           const char *call, network_attempt *attempt, void *of)
{
    gshmem_status_t status = TRANSPORT_FULL;
    struct wait w;

    stats_add(n->counts, STATS_FULL, 1);
    wait_begin(&w, call, WAIT_FOR_NETWORK);
    w.ended_by = request->pe;
    wait_for_object(&w, network_show_room, request);
    for (unsigned round = 1; status == TRANSPORT_FULL; round++) {
        int events = 0;
        if ((status = n->remote->ops->progress(n->remote, &events)))
            break;
        fetches_give(n);
        /* The PE of the request may have failed while messages of other PEs arrive. */
        status = events && round % 64 ? GSHMEM_OK : wait_step(&w);
        network_enter(n);
        if (!status)
            status = attempt(n, of);
    }
    wait_end(&w);
    return status;
}

static gshmem_status_t requests_attempt(struct network *n, void *of)
{
    return trace_is_on() ? requests_post_traced(n, of) : requests_hand_over(n, of);
}

gshmem_status_t network_explain(struct network *n, int pe, gshmem_status_t status, const char *call)
{
    if (network_lost(n, pe))
        return fail_remote(status, pe, call);
    if (status == GSHMEM_ERR_PEER_DEAD)
        return fail_silently(status, "%s: PE %d has left the job", call, pe);
    return status;
}

/* Posts what the transport has not taken at once. It releases the lock, so it has a request of its
 * own: other threads may fill in network.to_heap meanwhile. */
__attribute__((noinline)) static gshmem_status_t post_on(struct network *n,
                                                         const struct transport_request *asked,
                                                         gshmem_status_t status, const char *call)
{
    struct transport_request own = *asked, *request = &own;
    const bool internal = ((struct flight *)own.tag)->pending->internal;

    if (status == TRANSPORT_FULL)
        status = network_when_there_is_room(n, request, call, requests_attempt, request);
    if (!status) {
        network_count(n, request, STATS_NETWORK, internal);
    } else { /* the caller gets the failure as the result */
        ((struct flight *)own.tag)->departure = NULL;
        requests_land(own.tag, GSHMEM_OK);
    }
    if (n->due)
        open_batches_post_due(n);
    mutex_give(&n->lock);
    return status ? network_explain(n, request->pe, status, call) : GSHMEM_OK;
}

/* With the lock held, which it releases. plain: a put of the program, without a signal. */
static inline gshmem_status_t post_held(struct network *n, struct pending *pending,
                                        struct transport_request *request,
                                        struct departure *departure, struct landing *landing,
                                        const char *call, bool plain)
{
    struct flight *flight = take_off(n, pending, request->pe, departure);

    if (GSHMEM_UNLIKELY(!flight)) {
        mutex_give(&n->lock);
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a request in flight", call);
    }
    request->epoch = atomic_load_explicit(&n->fences, memory_order_relaxed);
    request->flags |= atomic_load_explicit(&pending->held, memory_order_relaxed);
    flight->sent = request->kind != TRANSPORT_PUT || request->bytes <= TRANSPORT_COPIED;
    /* NULL where nobody has to be told: transports coalesce such puts alone */
    request->sent = departure || !flight->sent ? depart : NULL;
    request->done = requests_land;
    if (landing) { /* a constant where this is inlined */
        flight->landing = landing;
        request->done = requests_land_first;
    }
    request->tag = flight;
    gshmem_status_t status =
        trace_is_on() ? requests_begin_traced(n, request) : requests_hand_over(n, request);
    if (GSHMEM_UNLIKELY(status))
        return post_on(n, request, status, call);
    if (plain)
        stats_operation(n->counts, STATS_PUT, STATS_NETWORK, request->pe, request->bytes);
    else
        network_count(n, request, STATS_NETWORK, pending->internal);
    mutex_give(&n->lock);
    return GSHMEM_OK;
}

static inline gshmem_status_t may_post(struct network *n, int pe, const char *call)
{
    if (GSHMEM_UNLIKELY(atomic_load_explicit(&n->lost[pe], memory_order_relaxed)))
        return fail_remote(GSHMEM_ERR_PEER_DEAD, pe, call);
    return network_meet(n, pe);
}

static inline gshmem_status_t post(struct network *n, struct pending *pending,
                                   struct transport_request *request, struct departure *departure,
                                   struct landing *landing, const char *call)
{
    gshmem_status_t status = may_post(n, request->pe, call);

    if (GSHMEM_UNLIKELY(status))
        return status;
    network_enter(n);
    return post_held(n, pending, request, departure, landing, call, false);
}

gshmem_status_t network_post(struct network *n, struct pending *pending,
                             struct transport_request *request, const char *call)
{
    return post(n, pending, request, NULL, NULL, call);
}

gshmem_status_t network_post_landing(struct network *n, struct pending *pending,
                                     struct transport_request *request, struct landing *l,
                                     const char *call)
{
    return post(n, pending, request, NULL, l, call);
}

/* ---- For open batches (parts.h) ---- */

gshmem_status_t network_may_post(struct network *n, int pe, const char *call)
{
    return may_post(n, pe, call);
}

gshmem_status_t network_post_held(struct network *n, struct pending *pending,
                                  struct transport_request *request, struct landing *l,
                                  const char *call)
{
    return post_held(n, pending, request, NULL, l, call, false);
}

struct flight *network_take_off(struct network *n, struct pending *pending, int pe)
{
    struct flight *f = take_off(n, pending, pe, NULL);

    if (f)
        f->sent = true; /* what it will send has been copied */
    return f;
}

gshmem_status_t network_post_flight(struct network *n, struct transport_request *request,
                                    struct flight *flight, struct landing *l)
{
    flight->landing = l;
    request->flags |= atomic_load_explicit(&flight->pending->held, memory_order_relaxed);
    request->done = requests_land_first;
    request->tag = flight;
    const gshmem_status_t status = n->remote->ops->post(n->remote, request);
    if (status)
        flight->landing = NULL;
    return status;
}

void network_fail_flight(struct flight *flight, gshmem_status_t status)
{
    requests_land(flight, status);
}

bool network_opens_batches(const struct network *n)
{
    return network_takes_batches(n) && !trace_is_on();
}

bool network_is_on_device(const struct network *n, const void *at, size_t bytes)
{
    return n->config.device && n->config.on_device(n->config.context, at, bytes);
}

gshmem_status_t network_put_to_heap(struct pending *pending, int pe, uint64_t offset,
                                    const void *source, size_t bytes)
{
    struct network *n = job->network;
    struct transport_request *put = &n->to_heap;

    gshmem_status_t status = may_post(n, pe, "put");
    if (GSHMEM_UNLIKELY(status))
        return status;
    network_enter(n);
    put->pe = pe;
    put->flags = TRANSPORT_LOOSE | TRANSPORT_MORE;
    put->offset = offset;
    put->local = (void *)source;
    put->bytes = bytes;
    return post_held(n, pending, put, NULL, NULL, "put", !pending->internal);
}

gshmem_status_t network_put(struct network *n, struct pending *pending,
                            struct transport_request *request, const char *call)
{
    struct departure d = {.status = GSHMEM_OK};
    gshmem_status_t status = post(n, pending, request, &d, NULL, call);
    struct wait w;

    if (status)
        return status;
    wait_begin(&w, call, WAIT_FOR_NETWORK);
    w.ended_by = request->pe;
    wait_for_object(&w, network_show_sending, request);
    /* acquire: pairs with the release in depart */
    while (!status && !atomic_load_explicit(&d.gone, memory_order_acquire))
        status = wait_slowly(&w);
    wait_end(&w);
    if (!status)
        return d.status ? fail_remote(d.status, request->pe, call) : GSHMEM_OK;
    mutex_take(&n->lock);
    if (!atomic_load_explicit(&d.gone, memory_order_relaxed))
        ((struct flight *)request->tag)->departure = NULL;
    mutex_give(&n->lock);
    return status;
}

__attribute__((noinline)) static gshmem_status_t requests_take_failure(struct pending *p,
                                                                       const char *call)
{
    uint64_t failure = atomic_load_explicit(&p->failed, memory_order_relaxed);

    if (atomic_exchange_explicit(&p->reported, failure, memory_order_relaxed) == failure)
        return GSHMEM_OK; /* reported by another quiet */
    return fail_remote((gshmem_status_t)(failure & 255), (int)(failure >> 8 & 0xffffff), call);
}

static int requests_last_from(const struct pending *p)
{
    struct network *n = job->network;

    mutex_take(&n->lock);
    const int pe = p->landed_from;
    mutex_give(&n->lock);
    return pe;
}

__attribute__((noinline)) static gshmem_status_t wait_until_done(const struct pending *p,
                                                                 uint64_t target, const char *call)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, call, WAIT_FOR_NETWORK);
    wait_for_object(&w, network_show_pending, p);
    while (!status && !pending_is_done(p, target))
        status = wait_slowly(&w);
    if (w.record)
        w.ended_by = requests_last_from(p);
    wait_end(&w);
    return status;
}

gshmem_status_t network_drain(struct pending *pending, const char *call)
{
    return wait_until_done(pending, atomic_load(&pending->issued), call);
}

/* No store of another PE can end this wait: it makes progress from the start. */
gshmem_status_t network_quiet(struct pending *pending, const char *call)
{
    const uint64_t target = atomic_load_explicit(&pending->issued, memory_order_relaxed);
    gshmem_status_t status;

    if (!pending_is_done(pending, target)) {
        network_drive(job->network, NETWORK_FOR_REQUESTS);
        if (!pending_is_done(pending, target) && (status = wait_until_done(pending, target, call)))
            return status;
    }
    if (GSHMEM_LIKELY(atomic_load_explicit(&pending->failed, memory_order_relaxed) ==
                      atomic_load_explicit(&pending->reported, memory_order_relaxed)))
        return GSHMEM_OK;
    return requests_take_failure(pending, call);
}

/* With the lock held. Looks on from where it stopped, if that flight is still in the list. */
static uint64_t sent_up_to(struct pending *p)
{
    const uint64_t done = atomic_load_explicit(&p->done, memory_order_relaxed);
    const struct flight *f = p->first;

    if (p->sent > done)
        f = p->last_sent->next;
    else
        p->sent = done;
    for (; p->sent != atomic_load_explicit(&p->issued, memory_order_relaxed); f = f->next) {
        if (!f->sent && !f->landed)
            break;
        p->last_sent = (struct flight *)f;
        p->sent++;
    }
    return p->sent;
}

static bool is_sent(struct network *n, struct pending *p, uint64_t target)
{
    mutex_take(&n->lock);
    const bool sent = sent_up_to(p) >= target;
    mutex_give(&n->lock);
    return sent;
}

gshmem_status_t network_flush(struct pending *pending, const char *call)
{
    const uint64_t target = atomic_load_explicit(&pending->issued, memory_order_relaxed);
    struct network *n = job->network;
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    if (pending_is_done(pending, target))
        return GSHMEM_OK;
    wait_begin(&w, call, WAIT_FOR_NETWORK);
    wait_for_object(&w, network_show_pending, pending);
    while (!status && !is_sent(n, pending, target))
        status = wait_slowly(&w);
    wait_end(&w);
    return status;
}

void network_session_start(struct pending *pending)
{
    atomic_store_explicit(&pending->held, TRANSPORT_HELD, memory_order_relaxed);
}

void network_session_stop(struct pending *pending)
{
    atomic_store_explicit(&pending->held, 0, memory_order_relaxed);
    network_send(job->network);
}
