/* Fetches of threads that wait for them, posted by one thread for all.
 *
 * A thread whose fetch nothing precedes takes the network's lock, posts and sends. A thread that
 * finds the lock taken, or others that are about to fetch, too, enters its fetch in a list. Whoever
 * makes progress next posts all of the list, and then sends. So no fetch waits for a response, nor
 * for a time: it waits for a thread that makes progress now, or for one yield of its own thread.
 *
 * "About to fetch": a fetch of another thread is complete, and this thread has not gone on since.
 * Where threads share CPUs, one response completes the fetches of many threads, and each gets the
 * CPU in turn. If the first sent its next fetch at once, each message would bring one. */
#define _GNU_SOURCE
#include "runtime/network/fetches.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>

#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/system.h"
#include "runtime/network/wait.h"
#include "runtime/trace/trace.h"

enum { SMALL_BYTES = 64 };

/* A traced job shows each operation when it is posted, by the thread that made it. */
bool fetch_takes(const struct transport_request *r)
{
    return (r->old || (r->kind == TRANSPORT_GET && r->bytes <= SMALL_BYTES)) && !trace_is_on();
}

/* By the transport, with the lock held, before the completion shows to the thread. */
static void fetch_landed(struct landing *l, gshmem_status_t status)
{
    struct fetch *f = (struct fetch *)((char *)l - offsetof(struct fetch, landing));

    (void)status; /* the thread finds it in its struct pending */
    if (f->left)
        return;
    atomic_fetch_add_explicit(&f->network->returning, 1, memory_order_relaxed);
    atomic_store(&f->landed, true); /* seq_cst, and the load: pairs with fetch_sleep */
    if (atomic_load(&f->asleep))
        f->network->sleepers_landed = true;
}

/* ---- Threads that sleep ----
 *
 * One of the threads sleeps until something arrives. Others, which only its progress can help,
 * sleep on one word. A thread whose fetch lands while it sleeps is woken after that progress. */

static void fetch_sleep(void *context, uint64_t ns)
{
    const struct timespec most = {.tv_nsec = (long)ns};
    struct fetch *f = context;
    struct network *n = f->network;

    if (!atomic_load_explicit(&f->posted, memory_order_relaxed)) {
        network_sleep(n, ns); /* posts it, and comes back, unless there is no room for it */
        return;
    }
    if (!atomic_exchange_explicit(&n->attended, true, memory_order_relaxed)) {
        network_sleep(n, ns);
        atomic_store_explicit(&n->attended, false, memory_order_relaxed);
        return;
    }
    /* acquire: the word is read before `landed`, which is set before the word changes */
    const uint32_t seen = atomic_load_explicit(&n->landings, memory_order_acquire);
    atomic_store(&f->asleep, true); /* seq_cst, and the load: pairs with fetch_landed */
    if (!atomic_load(&f->landed))
        system_futex(&n->landings, FUTEX_WAIT_PRIVATE, seen, &most);
    atomic_store_explicit(&f->asleep, false, memory_order_relaxed);
}

void fetches_give(struct network *n)
{
    const bool wakes = n->sleepers_landed;

    n->sleepers_landed = false;
    mutex_give(&n->lock);
    if (GSHMEM_LIKELY(!wakes))
        return;
    /* release: pairs with the acquire in fetch_sleep */
    atomic_fetch_add_explicit(&n->landings, 1, memory_order_release);
    system_futex(&n->landings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

/* ---- The list ---- */

static void fetches_add(struct network *n, struct fetch *f)
{
    struct fetch *before = atomic_load_explicit(&n->fetches, memory_order_relaxed);

    do {
        f->next = before;
        /* release: pairs with the acquire in fetches_collect */
    } while (!atomic_compare_exchange_weak_explicit(&n->fetches, &before, f, memory_order_release,
                                                    memory_order_relaxed));
}

/* With the lock held: all that wait, in the order in which they were made. */
static struct fetch *fetches_collect(struct network *n)
{
    /* acquire: pairs with the release in fetches_add */
    struct fetch *f = atomic_exchange_explicit(&n->fetches, NULL, memory_order_acquire), *next;
    struct fetch *made = NULL, **end = &n->fetches_full;

    for (; f; f = next) {
        next = f->next;
        f->next = made;
        made = f;
    }
    while (*end)
        end = &(*end)->next;
    *end = made;
    made = n->fetches_full;
    n->fetches_full = NULL;
    return made;
}

/* It was never in flight, and counts as issued and complete. */
static void fetch_pass(struct pending *p)
{
    const uint64_t issued = atomic_load_explicit(&p->issued, memory_order_relaxed) + 1,
                   done = atomic_load_explicit(&p->done, memory_order_relaxed) + 1;

    atomic_store_explicit(&p->issued, issued, memory_order_relaxed);
    /* release: pairs with the acquire in pending_is_done */
    atomic_store_explicit(&p->done, done, memory_order_release);
}

static void fetch_refuse(struct fetch *f, gshmem_status_t status)
{
    f->refused = status;
    if (f->flight)
        network_fail_flight(f->flight, GSHMEM_OK);
    else
        fetch_pass(f->pending);
}

/* TRANSPORT_FULL: it stays in the list. Otherwise its thread may have gone on already. */
static gshmem_status_t fetch_post(struct network *n, struct fetch *f)
{
    struct transport_request request = f->request;
    const bool internal = f->pending->internal;
    gshmem_status_t status = GSHMEM_OK;

    if (!f->flight && !(f->flight = network_take_off(n, f->pending, request.pe))) {
        fetch_refuse(f,
                     fail(GSHMEM_ERR_MEMORY, "out of memory for a request to PE %d", request.pe));
        return GSHMEM_OK;
    }
    request.flags |= TRANSPORT_MORE | TRANSPORT_HELD;
    request.epoch = atomic_load_explicit(&n->fences, memory_order_relaxed);
    atomic_store_explicit(&f->posted, true, memory_order_relaxed);
    if (n->open)
        status = open_batches_post_to(n, request.pe);
    if (!status)
        status = network_post_flight(n, &request, f->flight, &f->landing);
    if (status == TRANSPORT_FULL) {
        atomic_store_explicit(&f->posted, false, memory_order_relaxed);
        if (!f->waited_for_room)
            stats_add(n->counts, STATS_FULL, 1);
        f->waited_for_room = true;
    } else if (status)
        fetch_refuse(f, status);
    else
        network_count(n, &request, STATS_NETWORK, internal);
    return status;
}

bool fetches_post(struct network *n)
{
    struct fetch *f = fetches_collect(n), *next, **end = &n->fetches_full;
    bool some = false;

    for (; f; f = next) {
        next = f->next;
        if (fetch_post(n, f) != TRANSPORT_FULL) {
            some = true;
            continue;
        }
        f->next = NULL;
        *end = f;
        end = &f->next;
    }
    return some;
}

/* ---- The thread that waits ---- */

/* Posts it with all others that wait, unless another thread has the lock, or has done so. */
static void fetch_send(struct network *n, struct fetch *f)
{
    if (!atomic_load_explicit(&f->posted, memory_order_relaxed))
        network_drive_fetches(n);
}

static void fetch_show(const struct wait *w, struct where_wait *record)
{
    const struct fetch *f = w->object;
    const bool posted = atomic_load_explicit(&f->posted, memory_order_relaxed);
    struct wait of = *w;

    of.object = posted ? (const void *)f->pending : &f->request;
    (posted ? network_show_pending : network_show_room)(&of, record);
}

static gshmem_status_t fetch_wait(struct network *n, struct fetch *f, uint64_t target,
                                  const char *call)
{
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, call, WAIT_FOR_NETWORK);
    wait_for_object(&w, fetch_show, f);
    w.ended_by = f->request.pe;
    while (!status && !pending_is_done(f->pending, target)) {
        if (!(status = wait_slowly_by(&w, fetch_sleep, f)))
            fetch_send(n, f);
    }
    wait_end(&w);
    return status;
}

/* The wait was cut short. Whether the request is in flight, and its memory has to stay. */
static bool fetch_leave(struct network *n, struct fetch *f, uint64_t target)
{
    bool listed = false;

    mutex_take(&n->lock);
    n->fetches_full = fetches_collect(n);
    for (struct fetch **at = &n->fetches_full; *at && !listed;) {
        listed = *at == f;
        if (listed)
            *at = f->next;
        else
            at = &(*at)->next;
    }
    if (listed && f->flight)
        network_fail_flight(f->flight, GSHMEM_OK);
    const bool done = pending_is_done(f->pending, target);
    f->left = !listed && !done;
    if (!listed && done && !f->refused)
        atomic_fetch_sub_explicit(&n->returning, 1, memory_order_relaxed);
    mutex_give(&n->lock);
    return !listed && !done;
}

/* Another thread may have posted it, and have the line that says why. */
static gshmem_status_t fetch_explain(struct network *n, const struct fetch *f, const char *call)
{
    const int pe = f->request.pe;

    if (network_lost(n, pe) || f->refused == GSHMEM_ERR_PEER_DEAD)
        return network_explain(n, pe, f->refused, call);
    return fail_silently(f->refused, "%s: PE %d cannot be reached: %s; a line above says why", call,
                         pe, gshmem_status_text(f->refused));
}

/* Posts it at once, if no other thread is about to post, or enters it in the list. */
static gshmem_status_t fetch_make(struct network *n, struct fetch *f,
                                  struct transport_request *request, const char *call)
{
    const bool alone =
        !fetches_return(n) && !atomic_load_explicit(&n->fetches, memory_order_relaxed);

    if (alone && mutex_try(&n->lock)) {
        const gshmem_status_t status =
            network_post_held(n, f->pending, request, &f->landing, call);
        if (!status)
            network_drive(n, NETWORK_FOR_REQUESTS);
        return status;
    }
    f->request = *request;
    atomic_store_explicit(&f->posted, false, memory_order_relaxed);
    fetches_add(n, f);
    if (fetches_return(n))
        clock_yield();
    fetch_send(n, f);
    return GSHMEM_OK;
}

gshmem_status_t fetch_run(struct network *n, struct fetch *f, struct pending *pending,
                          struct transport_request *request, const char *call, bool *left)
{
    const uint64_t target = atomic_load_explicit(&pending->issued, memory_order_relaxed) + 1;
    gshmem_status_t status = network_may_post(n, request->pe, call);

    *left = false;
    if (status)
        return status;
    f->landing = (struct landing){fetch_landed};
    f->network = n;
    f->pending = pending;
    f->flight = NULL;
    f->refused = GSHMEM_OK;
    f->left = false;
    atomic_init(&f->asleep, false);
    atomic_init(&f->landed, false);
    f->request.pe = request->pe;
    atomic_init(&f->posted, true);
    if ((status = fetch_make(n, f, request, call)))
        return status;
    if (!pending_is_done(pending, target) && (status = fetch_wait(n, f, target, call))) {
        *left = fetch_leave(n, f, target);
        return status;
    }
    if (f->refused)
        return fetch_explain(n, f, call);
    atomic_fetch_sub_explicit(&n->returning, 1, memory_order_relaxed);
    return network_quiet(pending, call);
}
