#define _GNU_SOURCE
#include "bootstrap/hosts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 65 }; /* of a host's name on Linux, with its final zero */

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

int hosts_by_number(const int *number, int limit, int n_pes, int *host)
{
    int *seen = calloc((size_t)limit, sizeof *seen); /* 1 + the host's new number */
    int hosts = 0;

    if (!seen)
        return 0;
    for (int pe = 0; pe < n_pes; pe++) {
        int *known = &seen[number[pe]];
        if (!*known)
            *known = ++hosts;
        host[pe] = *known - 1;
    }
    free(seen);
    return hosts;
}

int hosts_by_name(const char *const *name, int n_pes, int *host)
{
    struct named *sorted = malloc((size_t)n_pes * sizeof *sorted);
    int lowest = 0;

    if (!sorted)
        return 0;
    for (int pe = 0; pe < n_pes; pe++)
        sorted[pe] = (struct named){name[pe], pe};
    qsort(sorted, (size_t)n_pes, sizeof *sorted, by_name_then_pe);
    /* A host's lowest PE stands for it, and is itself a number that its PEs have in common. */
    for (int i = 0; i < n_pes; i++) {
        if (i == 0 || strcmp(sorted[i].name, sorted[i - 1].name) != 0)
            lowest = sorted[i].pe;
        host[sorted[i].pe] = lowest;
    }
    free(sorted);
    return hosts_by_number(host, n_pes, n_pes, host);
}

static gshmem_status_t exchange(struct bootstrap *b, char (*text)[NAME_BYTES], const char **name)
{
    char self[NAME_BYTES] = "";
    size_t bytes;

    if (gethostname(self, sizeof self - 1) != 0)
        self[0] = 0;
    gshmem_status_t status = b->ops->publish(b, self, strlen(self));
    if (!status)
        status = b->ops->fence(b);
    for (int pe = 0; !status && pe < b->n_pes; pe++) {
        status = b->ops->fetch(b, pe, text[pe], NAME_BYTES - 1, &bytes);
        name[pe] = text[pe];
    }
    return status;
}

int hosts_by_exchange(struct bootstrap *b, int *host, gshmem_status_t *status)
{
    char(*text)[NAME_BYTES] = calloc((size_t)b->n_pes, sizeof *text);
    const char **name = calloc((size_t)b->n_pes, sizeof *name);
    int hosts = 0;

    if (text && name) {
        *status = exchange(b, text, name);
        hosts = *status ? -1 : hosts_by_name(name, b->n_pes, host);
    }
    free(name);
    free(text);
    return hosts;
}
