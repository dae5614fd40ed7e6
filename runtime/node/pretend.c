#include "runtime/node/pretend.h"

#include <stdint.h>
#include <stdlib.h>

#include "bootstrap/nodes.h"
#include "runtime/base/log.h"

/* The part of the `index`-th of n PEs that are dealt in contiguous blocks, the first ones larger by
 * one where it does not come out even: as gshmemrun deals them. */
static int pretend_part(int index, int n, int parts)
{
    const int least = n / parts, larger = n % parts, in_larger = larger * (least + 1);

    return index < in_larger ? index / (least + 1) : larger + (index - in_larger) / least;
}

/* count and at have room for a number of each node; node gets the new ones. */
static void pretend_deal(const struct bootstrap *b, int parts, int *count, int *at, int *node)
{
    for (int pe = 0; pe < b->n_pes; pe++)
        count[b->host[pe]]++;
    for (int pe = 0; pe < b->n_pes; pe++) {
        const int host = b->host[pe], n = count[host];
        node[pe] = host * parts + pretend_part(at[host]++, n, n < parts ? n : parts);
    }
}

gshmem_status_t pretend_nodes(struct pretended *p, struct bootstrap *b, int parts)
{
    int nodes = 0;

    if (parts == 1)
        return GSHMEM_OK;
    int *node = calloc((size_t)b->n_pes, sizeof *node);
    int *count = calloc((size_t)b->n_hosts * 2, sizeof *count);
    if (node && count && (int64_t)b->n_hosts * parts <= INT32_MAX) {
        pretend_deal(b, parts, count, count + b->n_hosts, node);
        nodes = nodes_by_number(node, b->n_hosts * parts, b->n_pes, node);
    }
    free(count);
    if (nodes == 0) {
        free(node);
        return fail(GSHMEM_ERR_MEMORY,
                    "start-up: out of memory for %d pretended nodes of each of "
                    "%d nodes (GSHMEM_PRETENDED_NODES)",
                    parts, b->n_hosts);
    }
    *p = (struct pretended){.bootstrap = b,
                            .host = b->host,
                            .n_hosts = b->n_hosts,
                            .one_machine = b->one_machine,
                            .node = node};
    b->one_machine = b->one_machine || b->n_hosts == 1;
    b->host = node;
    b->n_hosts = nodes;
    return GSHMEM_OK;
}

void pretend_no_more(struct pretended *p)
{
    if (!p->bootstrap)
        return;
    p->bootstrap->host = p->host;
    p->bootstrap->n_hosts = p->n_hosts;
    p->bootstrap->one_machine = p->one_machine;
    free(p->node);
    p->bootstrap = NULL;
}
