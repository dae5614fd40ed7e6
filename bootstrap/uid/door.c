/* PE 0's door: lets the job's PEs in and turns strangers away. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "bootstrap/uid/uid.h"
#include "runtime/base/clock.h"

enum {
    STRANGERS_MAX = 64,   /* connections at one time that have not proven who they are */
    STRANGER_SECONDS = 5, /* that each of them has for it */
};

struct door {
    int listener;
    int inside; /* PEs that have joined */
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
    uid_root_drop(p);
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
            uid_root_drop(p);
            continue;
        }
        memcpy(hello.nonce, p->nonce, sizeof hello.nonce);
        /* A new connection takes a few bytes without waiting. */
        if (uid_send(p->fd, UID_HELLO, &hello, sizeof hello, 0) != 0)
            uid_root_drop(p);
    }
}

static gshmem_status_t refuse_pe(struct uid *u, struct uid_peer *p, const struct uid_join *j,
                                 const char *why)
{
    char text[UID_TEXT_BYTES];

    snprintf(text, sizeof text, "PE %d on %s was started wrong: %s", j->pe, j->host, why);
    uid_send_abort(p->fd, GSHMEM_ERR_MISMATCH, j->pe, text);
    uid_root_drop(p);
    return uid_root_end(u, GSHMEM_ERR_MISMATCH, j->pe, text);
}

static gshmem_status_t admit(struct uid *u, struct door *d, struct uid_peer *p,
                             const struct uid_join *j)
{
    struct uid_peer *seat = &u->peer[j->pe];
    struct uid_welcome welcome;
    bool again = seat->fd >= 0;

    uid_proof_set(welcome.proof, uid_welcome_proof(u->id.secret, p->nonce, j));
    if (uid_send(p->fd, UID_WELCOME, &welcome, sizeof welcome, stream_deadline(STRANGER_SECONDS)) !=
        0) {
        uid_root_drop(p);
        return GSHMEM_OK;
    }
    if (again)
        uid_root_drop(seat); /* the same PE, over a better connection */
    seat->fd = p->fd;
    seat->have = 0;
    memcpy(seat->nonce, j->nonce, sizeof seat->nonce);
    memcpy(seat->host, j->host, sizeof seat->host);
    p->fd = -1;
    d->inside += !again;
    return GSHMEM_OK;
}

/* A stranger's frame is whole. Whoever knows the secret is one of the job's PEs: what is wrong with
 * it then is a mistake in the program, and ends start-up; all others are turned away. */
static gshmem_status_t check_stranger(struct uid *u, struct door *d, struct uid_peer *p)
{
    struct uid_join j;
    char why[160];

    memcpy(&j, p->in + sizeof(struct uid_header), sizeof j);
    if (uid_root_type(p) != UID_JOIN ||
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
        snprintf(why, sizeof why, "another process, on %s, has joined as PE %d", u->peer[j.pe].host,
                 j.pe);
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
        switch (uid_root_receive(p, u->base.n_pes)) {
        case UID_WHOLE:
            status = check_stranger(u, d, p);
            break;
        case UID_CLOSED: /* PEs try several addresses, and keep one connection */
            uid_root_drop(p);
            break;
        case UID_WRONG:
            turn_away(u, p, "what it says is not GSHMEM's wire");
            break;
        case UID_PART:
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
            return uid_root_late(u, "have not called gshmem_init_attr", not_inside);
        /* Wakes up to look at silent strangers, too. */
        poll(polled, (nfds_t)n, left < 1000 ? left : 1000);
        accept_strangers(d);
        status = serve_strangers(u, d);
    }
    return status;
}

gshmem_status_t uid_root_gather(struct uid *u, int listener)
{
    struct door *d = calloc(1, sizeof *d);

    if (!d)
        return uid_root_end(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    d->listener = listener;
    for (int i = 0; i < STRANGERS_MAX; i++)
        d->stranger[i].fd = -1;
    gshmem_status_t status = gather(u, d);
    for (int i = 0; i < STRANGERS_MAX; i++)
        uid_root_drop(&d->stranger[i]);
    free(d);
    return status;
}
