/* PE 0: lets the job's PEs in, collects their blobs and hands all of them to all. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#include "runtime/base/clock.h"

enum {
    STRANGERS_MAX = 64,   /* connections at one time that have not proven who they are */
    STRANGER_SECONDS = 5, /* that each of them has for it */
    FDS_SPARE = 128,      /* descriptors beyond the PEs' connections */
};

/* ---- What arrives ---- */

enum received { WHOLE, PART, CLOSED, WRONG };

/* Reads on until the frame is whole, as far as it goes without waiting. */
static enum received receive(struct uid_peer *p, int n_pes)
{
    struct uid_header h;

    for (;;) {
        size_t want = sizeof h;
        if (p->have >= sizeof h) {
            memcpy(&h, p->in, sizeof h);
            if (!uid_header_valid(&h, n_pes) || h.bytes > sizeof(struct uid_blob))
                return WRONG;
            want += h.bytes;
            if (p->have == want)
                return WHOLE;
        }
        ssize_t n = recv(p->fd, p->in + p->have, want - p->have, MSG_DONTWAIT);
        if (n > 0)
            p->have += (size_t)n;
        else if (n == 0)
            return CLOSED;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return PART;
        else if (errno != EINTR)
            return CLOSED;
    }
}

static uint32_t frame_type(const struct uid_peer *p)
{
    struct uid_header h;

    memcpy(&h, p->in, sizeof h);
    return h.type;
}

static void drop(struct uid_peer *p)
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
static gshmem_status_t end(struct uid *u, gshmem_status_t status, int pe, const char *text)
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

/* ---- Letting PEs in ---- */

struct door {
    int listener;
    int inside;                               /* PEs that have joined */
    struct uid_peer stranger[STRANGERS_MAX];
};

static void stranger_text(const struct uid_peer *p, char *text, size_t size)
{
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;

    snprintf(text, size, "an address unknown");
    if (getpeername(p->fd, (struct sockaddr *)&from, &bytes) == 0)
        uid_address_text(&from, text, size);
}

static void turn_away(struct uid *u, struct uid_peer *p, const char *why)
{
    char from[80];

    stranger_text(p, from, sizeof from);
    u->core.info("unique id: turned away a stranger at %s: %s", from, why);
    drop(p);
}

/* Accepts whoever waits, as long as there is room, and greets them. */
static void accept_strangers(struct door *d)
{
    for (int i = 0; i < STRANGERS_MAX; i++) {
        struct uid_peer *p = &d->stranger[i];
        struct uid_hello hello = {.version = UID_VERSION};
        int on = 1;

        if (p->fd >= 0)
            continue;
        p->fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (p->fd < 0)
            return;
        p->have = 0;
        p->since = clock_ns();
        setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (!uid_random(p->nonce, sizeof p->nonce)) {
            drop(p);
            continue;
        }
        memcpy(hello.nonce, p->nonce, sizeof hello.nonce);
        /* A new connection takes a few bytes without waiting. */
        if (uid_send(p->fd, UID_HELLO, &hello, sizeof hello, 0) != 0)
            drop(p);
    }
}

static gshmem_status_t refuse_pe(struct uid *u, struct uid_peer *p, const struct uid_join *j,
                                 const char *why)
{
    char text[UID_TEXT_BYTES];

    snprintf(text, sizeof text, "PE %d on %s was started wrong: %s", j->pe, j->host, why);
    uid_send_abort(p->fd, GSHMEM_ERR_MISMATCH, j->pe, text);
    drop(p);
    return end(u, GSHMEM_ERR_MISMATCH, j->pe, text);
}

static gshmem_status_t admit(struct uid *u, struct door *d, struct uid_peer *p,
                             const struct uid_join *j)
{
    struct uid_peer *seat = &u->peer[j->pe];
    struct uid_welcome welcome;
    bool again = seat->fd >= 0;

    uid_proof_set(welcome.proof, uid_welcome_proof(u->id.secret, p->nonce, j));
    if (uid_send(p->fd, UID_WELCOME, &welcome, sizeof welcome,
                 stream_deadline(STRANGER_SECONDS)) != 0) {
        drop(p);
        return GSHMEM_OK;
    }
    if (again)
        drop(seat); /* the same PE, over a better connection */
    seat->fd = p->fd;
    seat->have = 0;
    memcpy(seat->nonce, j->nonce, sizeof seat->nonce);
    memcpy(seat->host, j->host, sizeof seat->host);
    p->fd = -1;
    d->inside += !again;
    return GSHMEM_OK;
}

/* A stranger's frame is whole. Whoever knows the secret is one of the job's PEs: what is wrong with it
 * then is a mistake in the program, and ends start-up; all others are turned away. */
static gshmem_status_t check_stranger(struct uid *u, struct door *d, struct uid_peer *p)
{
    struct uid_join j;
    char why[160];

    memcpy(&j, p->in + sizeof(struct uid_header), sizeof j);
    if (frame_type(p) != UID_JOIN ||
        !uid_proof_equal(j.proof, uid_join_proof(u->id.secret, p->nonce, &j)) ||
        !uid_join_valid(&j)) {
        turn_away(u, p, "it does not know the secret of this job's id");
        return GSHMEM_OK;
    }
    if (j.version != UID_VERSION) {
        snprintf(why, sizeof why, "its GSHMEM speaks version %u of this wire, PE 0's version %d",
                 j.version, UID_VERSION);
        return refuse_pe(u, p, &j, why);
    }
    if (j.n_pes != u->base.n_pes) {
        snprintf(why, sizeof why, "it was told n_pes = %d, PE 0 was told n_pes = %d", j.n_pes,
                 u->base.n_pes);
        return refuse_pe(u, p, &j, why);
    }
    if (j.pe < 1 || j.pe >= j.n_pes) {
        snprintf(why, sizeof why, "the PEs that join PE 0 are 1..%d", j.n_pes - 1);
        return refuse_pe(u, p, &j, why);
    }
    if (u->peer[j.pe].fd >= 0 && memcmp(u->peer[j.pe].nonce, j.nonce, sizeof j.nonce) != 0) {
        snprintf(why, sizeof why, "another process, on %s, has joined as PE %d",
                 u->peer[j.pe].host, j.pe);
        return refuse_pe(u, p, &j, why);
    }
    return admit(u, d, p, &j);
}

static gshmem_status_t serve_strangers(struct uid *u, struct door *d)
{
    uint64_t now = clock_ns();
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < STRANGERS_MAX && !status; i++) {
        struct uid_peer *p = &d->stranger[i];
        if (p->fd < 0)
            continue;
        switch (receive(p, u->base.n_pes)) {
        case WHOLE:
            status = check_stranger(u, d, p);
            break;
        case CLOSED: /* PEs try several addresses, and keep one connection */
            drop(p);
            break;
        case WRONG:
            turn_away(u, p, "what it says is not GSHMEM's wire");
            break;
        case PART:
            if (now - p->since > STRANGER_SECONDS * 1000000000ull)
                turn_away(u, p, "it has said nothing for 5 seconds");
            break;
        }
    }
    return status;
}

static bool not_inside(const struct uid *u, int pe)
{
    return u->peer[pe].fd < 0;
}

static gshmem_status_t too_late(struct uid *u, const char *what,
                                bool (*absent)(const struct uid *u, int pe))
{
    char text[UID_TEXT_BYTES], pes[120];

    list_pes(pes, sizeof pes, u, absent);
    snprintf(text, sizeof text, "PE 0 has waited %d s (GSHMEM_INIT_TIMEOUT), and these PEs %s: %s",
             u->core.timeout_seconds, what, pes);
    return end(u, GSHMEM_ERR_TIMEOUT, 0, text);
}

static gshmem_status_t gather(struct uid *u, struct door *d)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds);
    gshmem_status_t status = GSHMEM_OK;

    while (!status && d->inside < u->base.n_pes - 1) {
        struct pollfd polled[1 + STRANGERS_MAX];
        int left = stream_left_ms(deadline), n = 0, full = 1;

        for (int i = 0; i < STRANGERS_MAX; i++) {
            full &= d->stranger[i].fd >= 0;
            if (d->stranger[i].fd >= 0)
                polled[n++] = (struct pollfd){.fd = d->stranger[i].fd, .events = POLLIN};
        }
        if (!full)
            polled[n++] = (struct pollfd){.fd = d->listener, .events = POLLIN};
        if (left == 0)
            return too_late(u, "have not called gshmem_init_attr", not_inside);
        /* Wakes up to look at silent strangers, too. */
        poll(polled, (nfds_t)n, left < 1000 ? left : 1000);
        accept_strangers(d);
        status = serve_strangers(u, d);
    }
    return status;
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

static gshmem_status_t broadcast(struct uid *u, uint32_t type, const void *payload, size_t bytes)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds);

    for (int pe = 1; pe < u->base.n_pes; pe++) {
        char text[UID_TEXT_BYTES];
        if (uid_send(u->peer[pe].fd, type, payload, bytes, deadline) == 0)
            continue;
        snprintf(text, sizeof text, "PE %d on %s cannot be written to: %s", pe, u->peer[pe].host,
                 strerror(errno));
        return end(u, GSHMEM_ERR_PEER_DEAD, pe, text);
    }
    return GSHMEM_OK;
}

static gshmem_status_t tell_hosts(struct uid *u)
{
    int n = u->base.n_pes;
    const char **name = calloc((size_t)n, sizeof *name);

    if (name) {
        if (gethostname(u->peer[0].host, UID_HOST_BYTES - 1) != 0)
            u->peer[0].host[0] = 0;
        for (int pe = 0; pe < n; pe++)
            name[pe] = u->peer[pe].host;
        u->base.n_hosts = hosts_by_name(name, n, u->host);
    }
    free(name);
    if (!u->base.n_hosts)
        return end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    return broadcast(u, UID_HOSTS, u->host, (size_t)n * sizeof *u->host);
}

gshmem_status_t uid_root_open(struct uid *u)
{
    size_t n = (size_t)u->base.n_pes;
    struct door *d = calloc(1, sizeof *d);
    gshmem_status_t status;

    u->peer = calloc(n, sizeof *u->peer);
    u->blob = calloc(n, sizeof *u->blob);
    u->blob_bytes = calloc(n, sizeof *u->blob_bytes);
    for (size_t i = 0; u->peer && i < n; i++)
        u->peer[i].fd = -1;
    if (!d || !u->peer || !u->blob || !u->blob_bytes) {
        free(d);
        return u->core.fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for %zu PEs", n);
    }
    for (int i = 0; i < STRANGERS_MAX; i++)
        d->stranger[i].fd = -1;
    d->listener = uid_take_listener(&u->id);
    if (d->listener < 0)
        status = u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                              "unique id: PE 0 must be the process that called gshmem_get_uniqueid, "
                              "and use each id once");
    else if (!(status = allow_connections(u)) && !(status = gather(u, d)))
        status = tell_hosts(u);
    for (int i = 0; i < STRANGERS_MAX; i++)
        drop(&d->stranger[i]);
    if (d->listener >= 0)
        close(d->listener);
    free(d);
    return status;
}

/* ---- Rounds ---- */

enum { NOT_YET = UINT16_MAX }; /* in blob_bytes */

static bool not_published(const struct uid *u, int pe)
{
    return u->blob_bytes[pe] == NOT_YET;
}

static gshmem_status_t take_frame(struct uid *u, int pe)
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
        return end(u, GSHMEM_ERR_ABORTED, pe, text);
    }
    memcpy(&round, p->in + sizeof h, sizeof round);
    if (h.type != UID_BLOB || round != u->round) {
        snprintf(text, sizeof text, "PE %d is not in round %u of the exchange, as PE 0 is", pe,
                 u->round);
        return end(u, GSHMEM_ERR_MISMATCH, pe, text);
    }
    u->blob_bytes[pe] = (uint16_t)(h.bytes - sizeof round);
    memcpy(u->blob[pe], p->in + sizeof h + sizeof round, u->blob_bytes[pe]);
    return GSHMEM_OK;
}

static gshmem_status_t serve_pe(struct uid *u, int pe)
{
    char text[UID_TEXT_BYTES];

    switch (receive(&u->peer[pe], u->base.n_pes)) {
    case WHOLE:
        return take_frame(u, pe);
    case PART:
        return GSHMEM_OK;
    case CLOSED:
        snprintf(text, sizeof text, "PE %d on %s has left before round %u of the exchange", pe,
                 u->peer[pe].host, u->round);
        return end(u, GSHMEM_ERR_PEER_DEAD, pe, text);
    case WRONG:
        break;
    }
    snprintf(text, sizeof text, "what PE %d on %s says is not GSHMEM's wire", pe, u->peer[pe].host);
    return end(u, GSHMEM_ERR_BOOTSTRAP, pe, text);
}

/* Waits until all PEs' blobs are there. polled and whose have room for all. */
static gshmem_status_t collect(struct uid *u, struct pollfd *polled, int *whose)
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
            return too_late(u, "have not come to the exchange", not_published);
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
        status = end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    else
        status = collect(u, polled, whose);
    free(polled);
    free(whose);
    if (status)
        return status;
    size_t bytes = uid_round_bytes(u->blob_bytes, n);
    if (!uid_room(u, bytes))
        return end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    uid_round_encode(u->told, u->round, u->blob_bytes, u->blob, n);
    uid_round_decode(u->told, bytes, u->round, u->offset, n);
    return broadcast(u, UID_ROUND, u->told, bytes);
}
