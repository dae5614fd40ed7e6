/* PEs of other nodes whose GPUs NVLink connects with this PE's. Their heaps are mapped here, like
 * those of the PEs of this node; the network reaches all others.
 *
 * Pieces are named by handles that are bytes, so that host memory and a collective can exchange
 * them: all PEs of the job get what each one sends. A PE that cannot map another's heap at all
 * reaches it by the network. Once it has mapped the first piece it has to map all, because kernels
 * know heaps and not pieces.
 *
 * Objects are still updated by one kind of agent: PEs that map an object use atomics of GPUs over
 * NVLink, and for all other PEs the target's proxy runs a kernel on its GPU. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/device_heap_parts.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"

/* What each PE sends to all. */
union letter {
    struct {
        struct device_card card; /* the first letter */
        uint64_t limit, addresses;
    } who;
    struct {
        struct device_piece piece; /* of 0 bytes: there is none */
        uint64_t more;             /* the sender has more pieces */
    } what;
};

/* ---- Exchange ---- */

static union letter *letter_of(const struct device_heap *d, int pe)
{
    return (union letter *)(void *)d->letters_remote + pe;
}

uint64_t domain_room(const struct job *j)
{
    return ((uint64_t)j->n_pes + 1) * sizeof(union letter);
}

/* All PEs of the job have allocated the same room, or none has. */
static gshmem_status_t tell_all(struct device_heap *d, const union letter *mine)
{
    union letter *own = letter_of(d, job->n_pes);

    *own = *mine;
    return d->tell(GSHMEM_TEAM_WORLD, letter_of(d, 0), own, sizeof *own);
}

/* ---- Which PEs are in the domain ---- */

bool domain_possible(const struct job *j)
{
    static const unsigned char none[sizeof((struct device_card *)0)->domain];
    const struct device_card *card = &j->node->control->member[j->node->index].card;

    return j->device_heap && memcmp(card->domain, none, sizeof none) != 0;
}

bool domain_exists(const struct device_heap *d)
{
    return d->letters_remote != NULL;
}

const struct device_heap_map *domain_map_of(const struct device_heap *d, int pe)
{
    int low = 0, high = d->remotes;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (d->remote[middle].pe < pe)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->remotes && d->remote[low].pe == pe ? &d->remote[low].map : NULL;
}

/* Opens the heap of a PE that is in the domain and on another node. */
static gshmem_status_t open_heap(struct device_heap *d, int pe)
{
    const union letter l = *letter_of(d, pe);
    struct device_heap_map map = {.own = NULL};
    struct remote_heap *more;
    gshmem_status_t status;

    if (d->node->index_of[pe] >= 0 || !l.who.card.present || l.who.addresses < l.who.limit)
        return GSHMEM_OK;
    status = d->device->ops->heap_open_remote(d->device, &l.who.card, l.who.limit,
                                            l.who.addresses - l.who.limit, &map);
    if (status || !map.own)
        return status;
    if (!(more = realloc(d->remote, (size_t)(d->remotes + 1) * sizeof *more))) {
        d->device->ops->heap_close(d->device, &map);
        return fail(GSHMEM_ERR_MEMORY, "out of memory for %d PEs of other nodes", d->remotes + 1);
    }
    d->remote = more;
    more[d->remotes++] = (struct remote_heap){pe, map};
    return GSHMEM_OK;
}

/* ---- Their memory ---- */

static gshmem_status_t memory_domain_follow(struct device_heap *d, struct remote_heap *f,
                                            bool imported)
{
    struct device_piece piece = letter_of(d, f->pe)->what.piece;

    piece.fd = -1;
    if (!piece.bytes)
        return GSHMEM_OK;
    return imported ? d->device->ops->window_follow(d->device, &f->map, &piece)
                : d->device->ops->heap_follow(d->device, &f->map, &piece);
}

/* Their heaps as they are now: one piece each, since no object was made yet. */
static void take_first_pieces(struct device_heap *d)
{
    int kept = 0;

    for (int i = 0; i < d->remotes; i++) {
        if (!memory_domain_follow(d, &d->remote[i], false)) {
            d->remote[kept++] = d->remote[i];
            continue;
        }
        log_info("PE %d, on another node, is in this PE's NVLink domain, and its heap cannot be "
                 "mapped: the "
                 "network reaches it",
                 d->remote[i].pe);
        d->device->ops->heap_close(d->device, &d->remote[i].map);
    }
    d->remotes = kept;
}

gshmem_status_t domain_start(struct job *j, domain_tell_fn *tell, void *room)
{
    struct device_heap *d = j->device_heap;
    union letter mine = {.who = {.card = j->node->control->member[j->node->index].card,
                                 d->limit_here,
                                 d->addresses}};
    gshmem_status_t status;

    d->tell = tell;
    d->letters_remote = room;
    if ((status = tell_all(d, &mine)))
        return status;
    for (int pe = 0; pe < j->n_pes && !status; pe++)
        status = open_heap(d, pe);
    for (int i = 0; status && i < d->remotes; i++)
        d->device->ops->heap_close(d->device, &d->remote[i].map);
    if (status) { /* the reason was logged; the others need not wait */
        d->remotes = 0;
        log_info("no PE of another node is mapped here: the network reaches them");
    }
    mine = (union letter){.what = {.piece = d->grown}};
    if ((status = tell_all(d, &mine)))
        return status;
    take_first_pieces(d);
    device_heap_enter_map(d);
    if (d->remotes)
        log_info("the GPU memory of %d PEs of other nodes is mapped, by NVLink", d->remotes);
    return GSHMEM_OK;
}

gshmem_status_t domain_follow(struct device_heap *d, bool imported, const char *call)
{
    gshmem_status_t status = GSHMEM_OK, telling;
    const int n = imported ? d->lents : 1;
    bool more;

    for (int i = 0;; i++) {
        union letter mine = {.what = {.more = i + 1 < n}};
        if (i < n)
            mine.what.piece = imported ? d->imported[i] : d->grown;
        if ((telling = tell_all(d, &mine)))
            return telling;
        for (int k = 0; k < d->remotes && !status; k++)
            status = memory_domain_follow(d, &d->remote[k], imported);
        more = false;
        for (int pe = 0; pe < job->n_pes; pe++)
            more |= letter_of(d, pe)->what.more != 0;
        if (!more)
            break;
    }
    if (status)
        log_info("%s: memory of a PE of another node in the same NVLink domain could not be mapped "
                 "(GSHMEM_CUDA_DOMAIN=off leaves such to the network)",
                 call);
    return status;
}

void *domain_stop(struct job *j)
{
    struct device_heap *d = j->device_heap;
    void *room = d ? d->letters_remote : NULL;

    if (d)
        d->letters_remote = NULL;
    return room;
}
