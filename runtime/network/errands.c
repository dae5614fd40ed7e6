/* Requests that a call posts and waits for by itself, apart from those of contexts. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/job/thread.h"
#include "runtime/network/fetches.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"

/* A context of one request. It outlives the call if the wait is cut short, since the response may
 * still arrive. */
struct errand {
    struct pending pending;
    uint64_t value;
    struct fetch fetch;
};

/* One is kept for the next call: calls that wait for a response follow each other. */
static struct errand *errand_begin(struct network *n)
{
    /* acquire: pairs with the release in errand_end */
    struct errand *e = atomic_exchange_explicit(&n->idle_errand, NULL, memory_order_acquire);

    return e ? e : calloc(1, sizeof *e);
}

static void errand_end(struct network *n, struct errand *e)
{
    /* acquire: pairs with the release of the thread that left the other one, which is freed here */
    struct errand *other = atomic_exchange_explicit(&n->idle_errand, e, memory_order_acq_rel);

    if (GSHMEM_UNLIKELY(other))
        free(other);
}

struct pending *network_errands_begin(struct network *n, const char *call)
{
    struct errand *e = errand_begin(n);

    if (!e)
        fail(GSHMEM_ERR_MEMORY, "%s: out of memory for requests in flight", call);
    if (e)
        e->pending.internal = false;
    return e ? &e->pending : NULL;
}

gshmem_status_t network_errands_end(struct network *n, struct pending *pending,
                                    gshmem_status_t status, const char *call)
{
    struct errand *e = (struct errand *)((char *)pending - offsetof(struct errand, pending));
    gshmem_status_t waited = network_quiet(pending, call);

    status = status ? status : waited;
    if (!status)
        errand_end(n, e);
    else if (!pending_any(pending))
        free(e);
    return status;
}

/* *left: whether the wait was cut short, and the request is still in flight. */
static gshmem_status_t errand_run(struct network *n, struct transport_request *request,
                                  const char *call, uint64_t *value, bool *left)
{
    struct errand *e = errand_begin(n);
    gshmem_status_t status;

    *left = false;
    if (!e)
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for a request in flight", call);
    request->old = value ? &e->value : NULL;
    e->pending.internal = this_thread.unheeded;
    if (fetch_takes(request)) {
        status = fetch_run(n, &e->fetch, &e->pending, request, call, left);
    } else {
        status = network_post(n, &e->pending, request, call);
        if (!status)
            status = network_quiet(&e->pending, call);
        *left = status && pending_any(&e->pending);
    }
    if (!status && value)
        *value = e->value;
    if (!status)
        errand_end(n, e);
    else if (!*left)
        free(e);
    return status;
}

gshmem_status_t network_errand(struct network *n, struct transport_request *request,
                               const char *call, uint64_t *value)
{
    bool left;

    return errand_run(n, request, call, value, &left);
}

gshmem_status_t network_fetch(struct network *n, struct transport_request *get, void *to,
                              const char *call)
{
    bool left;

    get->kind = TRANSPORT_GET;
    if (!(get->local = malloc(get->bytes)))
        return fail(GSHMEM_ERR_MEMORY, "%s: out of memory for %zu bytes of PE %d", call, get->bytes,
                    get->pe);
    const gshmem_status_t status = errand_run(n, get, call, NULL, &left);
    if (!status)
        memcpy(to, get->local, get->bytes);
    if (!left) /* otherwise the response may still be written there */
        free(get->local);
    return status;
}

gshmem_status_t network_remark(struct network *n, struct transport_request *request,
                               const char *call)
{
    this_thread.unheeded = true;
    const gshmem_status_t status = network_errand(n, request, call, NULL);
    this_thread.unheeded = false;
    return status;
}
