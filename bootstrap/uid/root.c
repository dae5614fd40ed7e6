#define _GNU_SOURCE
#include "bootstrap/uid/root.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/nodes.h"
#include "bootstrap/uid/admission.h"

enum {
    FDS_SPARE = 384, /* descriptors, of strangers and of the program, beyond the PEs' connections */
};

/* Each PE takes a descriptor here, and the usual limit is 1024. */
static gshmem_status_t allow_connections(struct uid *u)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)u->base.n_pes + FDS_SPARE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return GSHMEM_OK;
    limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= need)
        return GSHMEM_OK;
    return u->core.fail(GSHMEM_ERR_SYSTEM,
                        "unique id: %d PEs need %llu open files in PE 0, and the limit is %llu "
                        "(ulimit -n)",
                        u->base.n_pes, (unsigned long long)need,
                        (unsigned long long)limit.rlim_cur);
}

static gshmem_status_t root_send_nodes(struct uid *u)
{
    int n = u->base.n_pes;
    const char **name = calloc((size_t)n, sizeof *name);

    if (name) {
        nodes_own_name(u->peer[0].machine);
        for (int pe = 0; pe < n; pe++)
            name[pe] = u->peer[pe].machine;
        u->base.n_hosts = nodes_by_name(name, n, u->node);
    }
    free(name);
    if (!u->base.n_hosts)
        return uid_wire_fail_all(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    return uid_wire_send_all(u, UID_NODES, u->node, (size_t)n * sizeof *u->node);
}

gshmem_status_t uid_root_open(struct uid *u)
{
    size_t n = (size_t)u->base.n_pes;
    gshmem_status_t status;

    u->peer = calloc(n, sizeof *u->peer);
    u->blob = calloc(n, sizeof *u->blob);
    u->blob_bytes = calloc(n, sizeof *u->blob_bytes);
    for (size_t i = 0; u->peer && i < n; i++)
        u->peer[i].fd = -1;
    if (!u->peer || !u->blob || !u->blob_bytes)
        return u->core.fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %zu PEs", n);
    int listener[UID_ADDRESSES], listeners = uid_take_listeners(&u->id, listener);
    if (listeners == 0)
        return u->core.fail(GSHMEM_ERR_BOOTSTRAP, "unique id: PE 0 must be the process that called "
                                                  "gshmem_get_uniqueid, and use each id once");
    if (!(status = allow_connections(u)) && !(status = uid_admission_wait(u, listener, listeners)))
        status = root_send_nodes(u);
    while (listeners > 0)
        close(listener[--listeners]);
    return status;
}
