#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/verbs/eager.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/verbs.h"

struct eager {
    char *memory; /* [EAGER_BUFFERS][EAGER_BYTES] */
    struct ibv_mr *mr[NICS_MOST];
};

#define EAGER_MEMORY ((size_t)EAGER_BUFFERS * EAGER_BYTES)

static struct eager *eager_of(struct verbs *v, struct link *l)
{
    struct eager *e = l->eager;

    if (e)
        return e;
    e = calloc(1, sizeof *e);
    if (!e || !(e->memory = memory_pages(EAGER_MEMORY))) {
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for batches of PE %d", l->pe);
        free(e);
        return NULL;
    }
    return l->eager = e;
}

struct ibv_mr *eager_registration(struct verbs *v, struct link *l, struct nic *nic)
{
    struct eager *e = eager_of(v, l);

    if (!e)
        return NULL;
    struct ibv_mr **mr = &e->mr[nic - v->nic];
    if (!*mr)
        *mr = ibv_reg_mr(nic->pd, e->memory, EAGER_MEMORY,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!*mr && !v->refusal_said) {
        v->refusal_said = true;
        v->config.fail_handled(GSHMEM_ERR_TRANSPORT,
                               "verbs: %s: registering %zu KiB for batches of PE %d: %s (ulimit -l "
                               "limits what may be pinned): that PE reaches this one by %s",
                               nic->name, EAGER_MEMORY >> 10, l->pe, strerror(errno),
                               v->below->ops->name);
    }
    return *mr;
}

const char *eager_records(const struct link *l, uint64_t buffer)
{
    return l->eager && buffer < EAGER_BUFFERS ? l->eager->memory + buffer * EAGER_BYTES : NULL;
}

void eager_free(struct link *l)
{
    for (int i = 0; l->eager && i < NICS_MOST; i++) {
        if (l->eager->mr[i])
            ibv_dereg_mr(l->eager->mr[i]);
    }
    if (l->eager)
        free(l->eager->memory);
    free(l->eager);
}
