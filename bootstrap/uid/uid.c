/* For jobs that the program starts itself: PE 0 made a unique id, and every process was given it,
 * its PE and their number. PE 0 listens where the id says, and all others connect to it. */
#define _GNU_SOURCE
#include "bootstrap/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/uid/fence.h"
#include "bootstrap/uid/join.h"
#include "bootstrap/uid/root.h"
#include "bootstrap/uid/wire.h"
#include "runtime/base/count.h"

static enum bootstrap_found uid_detect(const struct bootstrap_request *request, char *why,
                                       size_t why_size)
{
    snprintf(why, why_size, "%s unique id was given to gshmem_init_attr",
             request->uid ? "a" : "no");
    return request->uid ? BOOTSTRAP_PRESENT : BOOTSTRAP_ABSENT;
}

static void uid_release(struct uid *u)
{
    for (int pe = 1; u->peer && pe < u->base.n_pes; pe++) {
        if (u->peer[pe].fd >= 0)
            close(u->peer[pe].fd);
    }
    if (u->root_fd >= 0)
        close(u->root_fd);
    free(u->peer);
    free(u->blob);
    free(u->blob_bytes);
    free(u->blobs);
    free(u->offset);
    free(u->node);
    free(u);
}

static gshmem_status_t uid_prepare(struct uid *u, const struct bootstrap_request *request)
{
    size_t n = (size_t)request->n_pes;

    if (!uid_id_decode(request->uid, &u->id))
        return request->fail(GSHMEM_ERR_ARGUMENT,
                             "unique id: these are not the bytes that gshmem_get_uniqueid of this "
                             "version of GSHMEM has made");
    if (request->n_pes < 1 || request->pe < 0 || request->pe >= request->n_pes)
        return request->fail(GSHMEM_ERR_ARGUMENT, "unique id: pe %d of n_pes %d does not exist",
                             request->pe, request->n_pes);
    u->core = *request;
    u->round = count_first();
    u->base.ops = &bootstrap_uid;
    u->base.pe = request->pe;
    u->base.n_pes = request->n_pes;
    u->base.host = u->node = calloc(n, sizeof *u->node);
    u->offset = calloc(n, sizeof *u->offset);
    if (!u->node || !u->offset)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %zu PEs", n);
    snprintf(u->base.job, sizeof u->base.job, "uid-%08x", u->id.checksum);
    return GSHMEM_OK;
}

static gshmem_status_t uid_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct uid *u = calloc(1, sizeof *u);

    if (!u)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    u->root_fd = -1;
    gshmem_status_t status = uid_prepare(u, request);
    if (!status)
        status = u->base.pe == 0 ? uid_root_open(u) : uid_join_open(u);
    if (status) {
        uid_release(u);
        return status;
    }
    *out = &u->base;
    return GSHMEM_OK;
}

static gshmem_status_t uid_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct uid *u = (struct uid *)b;

    if (bytes > BOOTSTRAP_BLOB_MAX)
        return u->core.fail(GSHMEM_ERR_ARGUMENT, "unique id: a blob of %zu bytes; at most %d",
                            bytes, BOOTSTRAP_BLOB_MAX);
    u->round++;
    if (bytes)
        memcpy(u->own, blob, bytes);
    u->own_bytes = (uint16_t)bytes;
    return GSHMEM_OK;
}

static gshmem_status_t uid_fence(struct bootstrap *b)
{
    struct uid *u = (struct uid *)b;

    if (u->broken)
        return u->core.fail(GSHMEM_ERR_BOOTSTRAP, "unique id: the exchange has failed before");
    return uid_fence_round(u);
}

static gshmem_status_t uid_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                 size_t *bytes)
{
    struct uid *u = (struct uid *)b;
    uint16_t length;

    if (pe < 0 || pe >= b->n_pes || !u->blobs)
        return u->core.fail(GSHMEM_ERR_ARGUMENT,
                            "unique id: the blob of PE %d; the job has PEs 0..%d", pe,
                            b->n_pes - 1);
    memcpy(&length, u->blobs + u->offset[pe], sizeof length);
    if (length > capacity)
        return u->core.fail(GSHMEM_ERR_ARGUMENT,
                            "unique id: the blob of PE %d has %u bytes, room is for %zu", pe,
                            length, capacity);
    memcpy(blob, u->blobs + u->offset[pe] + sizeof length, length);
    *bytes = length;
    return GSHMEM_OK;
}

/* PEs that wait in a fence, or enter the next, return with this failure. No launcher started these
 * processes, so there is none to end them. */
static void uid_abort(struct bootstrap *b, int status, const char *why)
{
    struct uid *u = (struct uid *)b;
    char text[UID_TEXT_BYTES];

    (void)status; /* of the process; what the others return is that the job was aborted */
    if (b->pe != 0) {
        uid_wire_send_abort(u->root_fd, GSHMEM_ERR_ABORTED, b->pe, why);
        return;
    }
    snprintf(text, sizeof text, "PE 0 has ended the job: %s", why);
    uid_wire_abort_all(u, GSHMEM_ERR_ABORTED, 0, text);
}

static void uid_close(struct bootstrap *b)
{
    uid_release((struct uid *)b);
}

const struct bootstrap_ops bootstrap_uid = {
    .size = sizeof(struct bootstrap_ops),
    .version = BOOTSTRAP_VERSION,
    .name = "uid",
    .detect = uid_detect,
    .open = uid_open,
    .publish = uid_publish,
    .fence = uid_fence,
    .fetch = uid_fetch,
    .abort = uid_abort,
    .close = uid_close,
};
