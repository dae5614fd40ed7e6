#define _GNU_SOURCE
#include "bootstrap/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SYSTEM_NAME_BYTES = 65, /* of a host's name on Linux, with its final zero */
    CUT_BYTES = 63,         /* a name as long as a DNS label may be */
    BOOT_DIGITS = 23,       /* of a boot's number that are enough to tell two from each other */
};
_Static_assert(SYSTEM_NAME_BYTES + 1 + BOOT_DIGITS <= NODES_NAME_BYTES &&
                   NODES_NAME_BYTES <= BOOTSTRAP_BLOB_MAX,
               "a name and a boot's number fit, and are carried");

struct named {
    const char *name;
    int pe;
};

static int by_name_then_pe(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->pe > y->pe) - (x->pe < y->pe);
}

int nodes_by_number(const int *number, int limit, int n_pes, int *node)
{
    int *seen = calloc((size_t)limit, sizeof *seen); /* 1 + the node's new number */
    int nodes = 0;

    if (!seen)
        return 0;
    for (int pe = 0; pe < n_pes; pe++) {
        int *known = &seen[number[pe]];
        if (!*known)
            *known = ++nodes;
        node[pe] = *known - 1;
    }
    free(seen);
    return nodes;
}

int nodes_by_name(const char *const *name, int n_pes, int *node)
{
    struct named *sorted = malloc((size_t)n_pes * sizeof *sorted);
    int lowest = 0;

    if (!sorted)
        return 0;
    for (int pe = 0; pe < n_pes; pe++)
        sorted[pe] = (struct named){name[pe], pe};
    qsort(sorted, (size_t)n_pes, sizeof *sorted, by_name_then_pe);
    /* A node's lowest PE stands for it, and is itself a number that its PEs have in common. */
    for (int i = 0; i < n_pes; i++) {
        if (i == 0 || strcmp(sorted[i].name, sorted[i - 1].name) != 0)
            lowest = sorted[i].pe;
        node[sorted[i].pe] = lowest;
    }
    free(sorted);
    return nodes_by_number(node, n_pes, n_pes, node);
}

void nodes_own_name(char name[NODES_NAME_BYTES])
{
    char boot[BOOT_DIGITS + 1] = "";

    if (gethostname(name, SYSTEM_NAME_BYTES) != 0)
        name[0] = 0;
    name[SYSTEM_NAME_BYTES - 1] = 0;
    size_t n = strlen(name);
    if (n > 0 && n < CUT_BYTES)
        return;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && fgets(boot, sizeof boot, f))
        snprintf(name + n, NODES_NAME_BYTES - n, "#%s", boot);
    if (f)
        fclose(f);
}

static gshmem_status_t nodes_exchange(struct bootstrap *b, char (*text)[NODES_NAME_BYTES],
                                      const char **name)
{
    char self[NODES_NAME_BYTES] = "";
    size_t bytes;

    nodes_own_name(self);
    gshmem_status_t status = b->ops->publish(b, self, strlen(self));
    if (!status)
        status = b->ops->fence(b);
    for (int pe = 0; !status && pe < b->n_pes; pe++) {
        status = b->ops->fetch(b, pe, text[pe], NODES_NAME_BYTES - 1, &bytes);
        name[pe] = text[pe];
    }
    return status;
}

int nodes_by_exchange(struct bootstrap *b, int *node, gshmem_status_t *status)
{
    char(*text)[NODES_NAME_BYTES] = calloc((size_t)b->n_pes, sizeof *text);
    const char **name = calloc((size_t)b->n_pes, sizeof *name);
    int nodes = 0;

    if (text && name) {
        *status = nodes_exchange(b, text, name);
        nodes = *status ? -1 : nodes_by_name(name, b->n_pes, node);
    }
    free(name);
    free(text);
    return nodes;
}
