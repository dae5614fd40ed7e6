/* PE 0: collects the blobs of all PEs, once door.c has let them in, and hands all to all. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/hosts.h"
#include "bootstrap/stream.h"
#include "bootstrap/uid/uid.h"

enum {
    FDS_SPARE = 384, /* descriptors, of strangers and of the program, beyond the PEs' connections */
};

/* ---- What arrives ---- */

/* Reads on until the frame is whole, as far as it goes without waiting. */
enum uid_received uid_root_receive(struct uid_peer *p, int n_pes)
{
    struct uid_header h;

    for (;;) {
        size_t want = sizeof h;
        if (p->have >= sizeof h) {
            memcpy(&h, p->in, sizeof h);
            if (!uid_header_valid(&h, n_pes) || h.bytes > sizeof(struct uid_blob))
                return UID_WRONG;
            want += h.bytes;
            if (p->have == want)
                return UID_WHOLE;
        }
        ssize_t n = recv(p->fd, p->in + p->have, want - p->have, MSG_DONTWAIT);
        if (n > 0)
            p->have += (size_t)n;
        else if (n == 0)
            return UID_CLOSED;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return UID_PART;
        else if (errno != EINTR)
            return UID_CLOSED;
    }
}

uint32_t uid_root_type(const struct uid_peer *p)
{
    struct uid_header h;

    memcpy(&h, p->in, sizeof h);
    return h.type;
}

void uid_root_drop(struct uid_peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    p->have = 0;
}

/* Tells all PEs that start-up is over, so that none of them waits for its own timeout. */
void uid_root_abort(struct uid *u, int status, int pe, const char *text)
{
    for (int i = 1; i < u->base.n_pes; i++) {
        if (u->peer[i].fd >= 0)
            uid_send_abort(u->peer[i].fd, status, pe, text);
    }
    u->broken = true;
}

/* Decides on a failure that all PEs have to hear of. */
gshmem_status_t uid_root_end(struct uid *u, gshmem_status_t status, int pe, const char *text)
{
    uid_root_abort(u, (int)status, pe, text);
    return u->core.fail(status, "unique id: %s", text);
}

/* "1, 3-5, 9" of the PEs for which absent(u, pe) holds, as far as it fits. */
static void list_pes(char *text, size_t size, const struct uid *u,
                     bool (*absent)(const struct uid *u, int pe))
{
    size_t used = 0;

    text[0] = 0;
    for (int pe = 1; pe < u->base.n_pes; pe++) {
        int last = pe;
        if (!absent(u, pe))
            continue;
        while (last + 1 < u->base.n_pes && absent(u, last + 1))
            last++;
        if (size - used < 32) {
            snprintf(text + used, size - used, ", …");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, last > pe ? "%s%d-%d" : "%s%d",
                                 used ? ", " : "", pe, last);
        pe = last;
    }
}

gshmem_status_t uid_root_late(struct uid *u, const char *what,
                              bool (*absent)(const struct uid *u, int pe))
{
    char text[UID_TEXT_BYTES], pes[120];

    list_pes(pes, sizeof pes, u, absent);
    snprintf(text, sizeof text, "PE 0 has waited %d s (GSHMEM_INIT_TIMEOUT), and these PEs %s: %s",
             u->core.timeout_seconds, what, pes);
    return uid_root_end(u, GSHMEM_ERR_TIMEOUT, 0, text);
}

/* ---- Opening ---- */

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

static gshmem_status_t root_broadcast(struct uid *u, uint32_t type, const void *payload,
                                      size_t bytes)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds);

    for (int pe = 1; pe < u->base.n_pes; pe++) {
        char text[UID_TEXT_BYTES];
        if (uid_send(u->peer[pe].fd, type, payload, bytes, deadline) == 0)
            continue;
        snprintf(text, sizeof text, "PE %d on %s cannot be written to: %s", pe, u->peer[pe].host,
                 strerror(errno));
        return uid_root_end(u, GSHMEM_ERR_PEER_DEAD, pe, text);
    }
    return GSHMEM_OK;
}

static gshmem_status_t tell_hosts(struct uid *u)
{
    int n = u->base.n_pes;
    const char **name = calloc((size_t)n, sizeof *name);

    if (name) {
        hosts_own_name(u->peer[0].host);
        for (int pe = 0; pe < n; pe++)
            name[pe] = u->peer[pe].host;
        u->base.n_hosts = hosts_by_name(name, n, u->host);
    }
    free(name);
    if (!u->base.n_hosts)
        return uid_root_end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    return root_broadcast(u, UID_HOSTS, u->host, (size_t)n * sizeof *u->host);
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
    if (!(status = allow_connections(u)) && !(status = uid_root_gather(u, listener, listeners)))
        status = tell_hosts(u);
    while (listeners > 0)
        close(listener[--listeners]);
    return status;
}

/* ---- Rounds ---- */

enum { NOT_YET = UINT16_MAX }; /* in blob_bytes */

static bool not_published(const struct uid *u, int pe)
{
    return u->blob_bytes[pe] == NOT_YET;
}

static gshmem_status_t root_take_frame(struct uid *u, int pe)
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
        return uid_root_end(u, GSHMEM_ERR_ABORTED, pe, text);
    }
    memcpy(&round, p->in + sizeof h, sizeof round);
    if (h.type != UID_BLOB || round != u->round) {
        snprintf(text, sizeof text, "PE %d is not in round %u of the exchange, as PE 0 is", pe,
                 u->round);
        return uid_root_end(u, GSHMEM_ERR_MISMATCH, pe, text);
    }
    u->blob_bytes[pe] = (uint16_t)(h.bytes - sizeof round);
    memcpy(u->blob[pe], p->in + sizeof h + sizeof round, u->blob_bytes[pe]);
    return GSHMEM_OK;
}

static gshmem_status_t serve_pe(struct uid *u, int pe)
{
    char text[UID_TEXT_BYTES];

    switch (uid_root_receive(&u->peer[pe], u->base.n_pes)) {
    case UID_WHOLE:
        return root_take_frame(u, pe);
    case UID_PART:
        return GSHMEM_OK;
    case UID_CLOSED:
        snprintf(text, sizeof text, "PE %d on %s has left before round %u of the exchange", pe,
                 u->peer[pe].host, u->round);
        return uid_root_end(u, GSHMEM_ERR_PEER_DEAD, pe, text);
    case UID_WRONG:
        break;
    }
    snprintf(text, sizeof text, "what PE %d on %s says is not GSHMEM's wire", pe, u->peer[pe].host);
    return uid_root_end(u, GSHMEM_ERR_BOOTSTRAP, pe, text);
}

/* Waits until all PEs' blobs are there. polled and whose have room for all. */
static gshmem_status_t root_collect(struct uid *u, struct pollfd *polled, int *whose)
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
            return uid_root_late(u, "have not come to the exchange", not_published);
        poll(polled, (nfds_t)n, left);
        for (int i = 0; i < n; i++) {
            gshmem_status_t status = polled[i].revents ? serve_pe(u, whose[i]) : GSHMEM_OK;
            if (status)
                return status;
        }
    }
}

gshmem_status_t uid_root_fence(struct uid *u)
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
        status = uid_root_end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    else
        status = root_collect(u, polled, whose);
    free(polled);
    free(whose);
    if (status)
        return status;
    size_t bytes = uid_round_bytes(u->blob_bytes, n);
    if (!uid_room(u, bytes))
        return uid_root_end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    uid_round_encode(u->told, u->round, u->blob_bytes, u->blob, n);
    uid_round_decode(u->told, bytes, u->round, u->offset, n);
    return root_broadcast(u, UID_ROUND, u->told, bytes);
}
