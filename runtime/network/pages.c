#include "runtime/network/pages.h"

#include <stdlib.h>

#include "bootstrap/bootstrap.h"
#include "gshmem.h"
#include "runtime/base/clock.h"
#include "runtime/base/sanitizer.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/node/node.h"

enum { FETCH_MS = 1000 };

void pages_copy(const struct where_page *page, struct where_page *copy)
{
    uint32_t claimed = 0;

    for_another_pe_begin(); /* a record that changes meanwhile is copied again, or left out */
    memcpy(copy, page, sizeof *copy);
    for (int i = 0; i < WHERE_WAITS; i++)
        claimed |= (uint32_t)where_copy(page, i, &copy->wait[i]) << i;
    for_another_pe_end();
    atomic_store_explicit(&copy->claimed, claimed, memory_order_relaxed);
}

/* What is in flight stays here where an answer has not come in time: it may come at any time until
 * the network has stopped, and memory that is awaited is not freed. */
struct fetch {
    struct pending pending;
    struct where_page page;
    int pe;
    bool asked;
};

static bool fetch_begin(struct job *j, struct fetch *f, int pe)
{
    struct transport_request get = {.kind = TRANSPORT_GET,
                                    .pe = pe,
                                    .segment = SEGMENT_SYSTEM,
                                    .offset = j->node->page_offset,
                                    .local = &f->page,
                                    .bytes = sizeof f->page};

    f->pe = pe;
    f->pending.internal = true;
    if (network_lost(j->network, pe))
        return false;
    return network_post(j->network, &f->pending, &get, "gshmem-where") == GSHMEM_OK;
}

static bool all_have_come(struct fetch *const *fetch, int n)
{
    for (int i = 0; i < n; i++) {
        if (fetch[i] && fetch[i]->asked && pending_any(&fetch[i]->pending))
            return false;
    }
    return true;
}

static void take(struct job *j, struct fetch *f, struct where_member *m)
{
    const bool here = f && f->asked && !pending_any(&f->pending) &&
                      !atomic_load_explicit(&f->pending.failed, memory_order_relaxed) &&
                      f->page.magic == WHERE_MAGIC && f->page.version == WHERE_VERSION;

    m->life = network_lost(j->network, m->pe) ? WHERE_HAS_DIED
              : !here                         ? WHERE_SILENT
              : f->page.leaving == WHERE_LEFT ? WHERE_HAS_LEFT
                                              : WHERE_LIVES;
    m->has_page = here;
    if (here)
        pages_copy(&f->page, &m->page);
    if (f && !(f->asked && pending_any(&f->pending)))
        free(f);
}

struct where_member *pages_fetch(struct job *j)
{
    const int n = j->n_pes - j->node->n;
    const uint64_t until = clock_ns() + FETCH_MS * (uint64_t)CLOCK_MS;
    struct where_member *member = calloc((size_t)n + 1, sizeof *member);
    struct fetch **fetch = calloc((size_t)n + 1, sizeof(struct fetch *));
    int next = 0;

    if (!member || !fetch) {
        free(member);
        free(fetch);
        return NULL;
    }
    for (int pe = 0; pe < j->n_pes; pe++) {
        if (j->node->index_of[pe] >= 0)
            continue;
        member[next].pe = pe;
        member[next].node = j->bootstrap->host[pe];
        fetch[next] = calloc(1, sizeof **fetch);
        if (fetch[next])
            fetch[next]->asked = fetch_begin(j, fetch[next], pe);
        next++;
    }
    while (!all_have_come(fetch, n) && clock_ns() < until) {
        if (!network_drive(j->network, NETWORK_FOR_REQUESTS))
            network_sleep(j->network, CLOCK_MS);
    }
    for (int i = 0; i < n; i++)
        take(j, fetch[i], &member[i]);
    free(fetch);
    return member;
}
