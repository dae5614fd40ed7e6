#define _GNU_SOURCE
#include "bootstrap/uid/admission.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/system.h"

enum {
    STRANGERS_MAX = 256,  /* connections at one time whose peers have not proven to be PEs */
    STRANGER_SECONDS = 5, /* that each of them has for it, */
    STRANGER_LEAST_MS = 50, /* or this where others wait for a place: the response of a PE takes
                             * a round trip, and its CPU may run other processes */
    SOON_MS = 10,
};

struct admission {
    const int *listener;
    int listeners;
    int inside; /* PEs that have joined */
    bool starved; /* there is no descriptor for one more */
    int turned_away;
    struct uid_peer stranger[STRANGERS_MAX];
};

/* Whoever scans ports does so often: one line is enough to look into it, and their number at the
 * end. */
static void turn_away(struct uid *u, struct admission *d, struct uid_peer *p, const char *why)
{
    char from[80];

    if (d->turned_away++ == 0) {
        uid_address_text(&p->from, from, sizeof from);
        u->core.info("unique id: turned away a stranger at %s: %s", from, why);
    }
    uid_wire_drop(p);
}

static void admission_greet(struct uid_peer *p, int fd, const struct sockaddr_storage *from)
{
    struct uid_hello hello = {.version = UID_VERSION};
    int on = 1;

    p->fd = fd;
    p->from = *from;
    p->have = 0;
    p->since = clock_ns();
    system_setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!system_random(p->nonce, sizeof p->nonce)) {
        uid_wire_drop(p);
        return;
    }
    memcpy(hello.nonce, p->nonce, sizeof hello.nonce);
    /* A new connection takes a few bytes without waiting. */
    if (uid_wire_send(p->fd, UID_HELLO, &hello, sizeof hello, 0) != 0)
        uid_wire_drop(p);
}

/* A place for one more connection. If all are taken: that of the connection that has waited longest
 * and from which nothing has arrived, as all have just been read. NULL: not now. */
static struct uid_peer *admission_find_place(struct admission *d)
{
    struct uid_peer *oldest = NULL;

    for (int i = 0; i < STRANGERS_MAX; i++) {
        struct uid_peer *p = &d->stranger[i];
        if (p->fd < 0)
            return p;
        if (!oldest || (p->have == 0) > (oldest->have == 0) ||
            ((p->have == 0) == (oldest->have == 0) && p->since < oldest->since))
            oldest = p;
    }
    return clock_ns() - oldest->since < STRANGER_LEAST_MS * 1000000ull ? NULL : oldest;
}

/* Accepts connections, as long as there is room, and sends each a HELLO. */
static void accept_strangers(struct uid *u, struct admission *d)
{
    d->starved = false;
    for (int i = 0; i < d->listeners; i++) {
        struct uid_peer *p;
        while ((p = admission_find_place(d))) {
            struct sockaddr_storage from;
            int fd = descriptor_keep(
                system_accept(d->listener[i], &from, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (fd < 0) {
                d->starved |= errno != EAGAIN && errno != EWOULDBLOCK;
                break;
            }
            if (p->fd >= 0)
                turn_away(u, d, p, "it has said nothing, and others came");
            admission_greet(p, fd, &from);
        }
    }
}

/* Says that this is PE 0, which alone can. False: it has ended the connection. */
static bool welcome_pe(const struct uid *u, const struct uid_peer *p, const struct uid_join *j)
{
    struct uid_welcome welcome;

    uid_proof_set(welcome.proof, uid_welcome_proof(u->id.secret, p->nonce, j));
    return uid_wire_send(p->fd, UID_WELCOME, &welcome, sizeof welcome,
                         stream_deadline(STRANGER_SECONDS)) == 0;
}

/* The reason is believed behind a welcome alone. */
static gshmem_status_t refuse_pe(struct uid *u, struct uid_peer *p, const struct uid_join *j,
                                 const char *why)
{
    char text[UID_TEXT_BYTES];

    snprintf(text, sizeof text, "PE %d on %s was started wrong: %s", j->pe, j->machine, why);
    if (welcome_pe(u, p, j))
        uid_wire_send_abort(p->fd, GSHMEM_ERR_MISMATCH, j->pe, text);
    uid_wire_drop(p);
    return uid_wire_fail_all(u, GSHMEM_ERR_MISMATCH, j->pe, text);
}

/* A PE that has waited too long for our answer, and comes again. */
static bool has_left(const struct uid_peer *p)
{
    char byte;
    ssize_t n = system_recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static gshmem_status_t admit(struct uid *u, struct admission *d, struct uid_peer *p,
                             const struct uid_join *j)
{
    struct uid_peer *seat = &u->peer[j->pe];
    bool again = seat->fd >= 0;

    if (has_left(p) || !welcome_pe(u, p, j)) {
        uid_wire_drop(p);
        return GSHMEM_OK;
    }
    if (again)
        uid_wire_drop(seat); /* the same PE, over a better connection */
    seat->fd = p->fd;
    seat->have = 0;
    memcpy(seat->nonce, j->nonce, sizeof seat->nonce);
    memcpy(seat->machine, j->machine, sizeof seat->machine);
    p->fd = -1;
    d->inside += !again;
    return GSHMEM_OK;
}

/* A stranger's frame is whole. Whoever knows the secret is one of the job's PEs: what is wrong with
 * it then is a mistake in the program, and ends start-up; all others are turned away. */
static gshmem_status_t check_stranger(struct uid *u, struct admission *d, struct uid_peer *p)
{
    struct uid_join j;
    char why[160];

    memcpy(&j, p->in + sizeof(struct uid_header), sizeof j);
    if (uid_wire_type(p) != UID_JOIN ||
        !uid_proof_equal(j.proof, uid_join_proof(u->id.secret, p->nonce, &j)) ||
        !uid_join_valid(&j)) {
        turn_away(u, d, p, "it does not know the secret of this job's id");
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
                 u->peer[j.pe].machine, j.pe);
        return refuse_pe(u, p, &j, why);
    }
    return admit(u, d, p, &j);
}

static gshmem_status_t serve_strangers(struct uid *u, struct admission *d)
{
    uint64_t now = clock_ns();
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < STRANGERS_MAX && !status; i++) {
        struct uid_peer *p = &d->stranger[i];
        if (p->fd < 0)
            continue;
        switch (uid_wire_receive(p, u->base.n_pes)) {
        case UID_WHOLE:
            status = check_stranger(u, d, p);
            break;
        case UID_CLOSED: /* PEs try several addresses, and keep one connection */
            uid_wire_drop(p);
            break;
        case UID_WRONG:
            turn_away(u, d, p, "what it says is not GSHMEM's wire");
            break;
        case UID_PART:
            if (now - p->since > STRANGER_SECONDS * 1000000000ull)
                turn_away(u, d, p, "it has said nothing for 5 seconds");
            break;
        }
    }
    return status;
}

static bool not_inside(const struct uid *u, int pe)
{
    return u->peer[pe].fd < 0;
}

/* Waits until something arrives, or a connection that there is room for, or most_ms are over. */
static void admission_poll(const struct admission *d, int most_ms)
{
    struct pollfd polled[UID_ADDRESSES + STRANGERS_MAX];
    int n = 0, taken = 0;

    for (int i = 0; i < STRANGERS_MAX; i++) {
        if (d->stranger[i].fd >= 0)
            polled[n++] = (struct pollfd){.fd = d->stranger[i].fd, .events = POLLIN};
    }
    taken = n;
    for (int i = 0; i < d->listeners && taken < STRANGERS_MAX && !d->starved; i++)
        polled[n++] = (struct pollfd){.fd = d->listener[i], .events = POLLIN};
    if (taken == STRANGERS_MAX || d->starved)
        most_ms = most_ms < SOON_MS ? most_ms : SOON_MS;
    system_poll(polled, (nfds_t)n, most_ms * (int64_t)CLOCK_MS);
}

static gshmem_status_t admission_wait(struct uid *u, struct admission *d)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds);
    gshmem_status_t status = GSHMEM_OK;

    while (!status && d->inside < u->base.n_pes - 1) {
        int left = stream_left_ms(deadline);

        if (left == 0)
            return uid_wire_fail_late(u, "have not called gshmem_init_attr", not_inside);
        /* Wakes up to look at silent strangers, too. */
        admission_poll(d, left < 1000 ? left : 1000);
        status = serve_strangers(u, d);
        if (!status)
            accept_strangers(u, d);
    }
    return status;
}

gshmem_status_t uid_admission_wait(struct uid *u, const int *listener, int listeners)
{
    struct admission *d = calloc(1, sizeof *d);

    if (!d)
        return uid_wire_fail_all(u, GSHMEM_ERR_MEMORY, 0, "PE 0 is out of memory");
    d->listener = listener;
    d->listeners = listeners;
    for (int i = 0; i < STRANGERS_MAX; i++)
        d->stranger[i].fd = -1;
    gshmem_status_t status = admission_wait(u, d);
    for (int i = 0; i < STRANGERS_MAX; i++)
        uid_wire_drop(&d->stranger[i]);
    if (d->turned_away > 1)
        u->core.info("unique id: turned away %d strangers", d->turned_away);
    free(d);
    return status;
}
