#define _GNU_SOURCE
#include "bootstrap/uid/fence.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/stream.h"
#include "runtime/base/system.h"

/* ---- PE 0 ---- */

enum { NOT_YET = UINT16_MAX }; /* in blob_bytes */

static bool not_published(const struct uid *u, int pe)
{
    return u->blob_bytes[pe] == NOT_YET;
}

static gshmem_status_t fence_take_frame(struct uid *u, int pe)
{
    struct uid_peer *p = &u->peer[pe];
    struct uid_header h;
    uint32_t round;
    char text[UID_TEXT_BYTES];

    memcpy(&h, p->in, sizeof h);
    p->have = 0;
    if (h.type == UID_ABORT) {
        struct uid_abort a;
        memcpy(&a, p->in + sizeof h, sizeof a);
        snprintf(text, sizeof text, "PE %d has ended the job: %.*s", pe, UID_TEXT_BYTES - 60,
                 uid_abort_valid(&a) ? a.text : "");
        return uid_wire_fail_all(u, GSHMEM_ERR_ABORTED, pe, text);
    }
    memcpy(&round, p->in + sizeof h, sizeof round);
    if (h.type != UID_BLOB || round != u->round) {
        snprintf(text, sizeof text, "PE %d is not in round %u of the exchange, as PE 0 is", pe,
                 u->round);
        return uid_wire_fail_all(u, GSHMEM_ERR_MISMATCH, pe, text);
    }
    u->blob_bytes[pe] = (uint16_t)(h.bytes - sizeof round);
    memcpy(u->blob[pe], p->in + sizeof h + sizeof round, u->blob_bytes[pe]);
    return GSHMEM_OK;
}

static gshmem_status_t fence_serve_pe(struct uid *u, int pe)
{
    char text[UID_TEXT_BYTES];

    switch (uid_wire_receive(&u->peer[pe], u->base.n_pes)) {
    case UID_WHOLE:
        return fence_take_frame(u, pe);
    case UID_PART:
        return GSHMEM_OK;
    case UID_CLOSED:
        snprintf(text, sizeof text, "PE %d on %s has left before round %u of the exchange", pe,
                 u->peer[pe].machine, u->round);
        return uid_wire_fail_all(u, GSHMEM_ERR_PEER_DEAD, pe, text);
    case UID_WRONG:
        break;
    }
    snprintf(text, sizeof text, "what PE %d on %s says is not GSHMEM's wire", pe,
             u->peer[pe].machine);
    return uid_wire_fail_all(u, GSHMEM_ERR_BOOTSTRAP, pe, text);
}

/* Waits until all PEs' blobs are there. polled and whose have room for all. */
static gshmem_status_t fence_collect(struct uid *u, struct pollfd *polled, int *whose)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds);

    for (;;) {
        int n = 0, left = stream_left_ms(deadline);

        for (int pe = 1; pe < u->base.n_pes; pe++) {
            if (not_published(u, pe)) {
                polled[n] = (struct pollfd){.fd = u->peer[pe].fd, .events = POLLIN};
                whose[n++] = pe;
            }
        }
        if (n == 0)
            return GSHMEM_OK;
        if (left == 0)
            return uid_wire_fail_late(u, "have not come to the exchange", not_published);
        system_poll(polled, (nfds_t)n, left * (int64_t)CLOCK_MS);
        for (int i = 0; i < n; i++) {
            gshmem_status_t status = polled[i].revents ? fence_serve_pe(u, whose[i]) : GSHMEM_OK;
            if (status)
                return status;
        }
    }
}

static gshmem_status_t fence_at_root(struct uid *u)
{
    int n = u->base.n_pes;
    struct pollfd *polled = calloc((size_t)n, sizeof *polled);
    int *whose = calloc((size_t)n, sizeof *whose);
    gshmem_status_t status = GSHMEM_OK;

    for (int pe = 1; pe < n; pe++)
        u->blob_bytes[pe] = NOT_YET;
    u->blob_bytes[0] = u->own_bytes;
    memcpy(u->blob[0], u->own, u->own_bytes);
    if (!polled || !whose)
        status = uid_wire_fail_all(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    else
        status = fence_collect(u, polled, whose);
    free(polled);
    free(whose);
    if (status)
        return status;
    size_t bytes = uid_round_bytes(u->blob_bytes, n);
    if (!uid_wire_reserve(u, bytes))
        return uid_wire_fail_all(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    uid_round_encode(u->blobs, u->round, u->blob_bytes, u->blob, n);
    uid_round_decode(u->blobs, bytes, u->round, u->offset, n);
    return uid_wire_send_all(u, UID_ROUND, u->blobs, bytes);
}

/* ---- PE 1 and on ---- */

static gshmem_status_t fence_at_joined(struct uid *u)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds + UID_GRACE_SECONDS);
    struct uid_blob blob = {.round = u->round};
    struct uid_header h;

    memcpy(blob.bytes, u->own, u->own_bytes);
    /* If PE 0 has ended the job, its reason is there to read although this fails. */
    int sent =
        uid_wire_send(u->root_fd, UID_BLOB, &blob, sizeof blob.round + u->own_bytes, deadline);
    int error = errno;
    if (sent != 0 && error == ETIMEDOUT)
        return uid_wire_no_frame(u, -1, "room for a blob");
    gshmem_status_t status = uid_wire_expect(u, u->root_fd, UID_ROUND, "all blobs", deadline, &h);
    if (status)
        return status;
    if (!uid_wire_reserve(u, h.bytes)) {
        u->broken = true;
        return u->core.fail(GSHMEM_ERR_MEMORY, "unique id: out of memory for %u bytes", h.bytes);
    }
    ssize_t n = stream_read_all(u->root_fd, u->blobs, h.bytes, deadline);
    if (n <= 0)
        return uid_wire_no_frame(u, n, "all blobs");
    if (!uid_round_decode(u->blobs, h.bytes, u->round, u->offset, u->base.n_pes)) {
        u->broken = true;
        return u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                            "unique id: what PE 0 sends is not round %u of the exchange", u->round);
    }
    return GSHMEM_OK;
}

gshmem_status_t uid_fence_round(struct uid *u)
{
    return u->base.pe == 0 ? fence_at_root(u) : fence_at_joined(u);
}
