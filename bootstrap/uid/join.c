#define _GNU_SOURCE
#include "bootstrap/uid/join.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/system.h"

enum {
    NEXT_ADDRESS_MS = 300, /* how long an address is given before the next is tried beside it */
    ANSWER_SECONDS = 10,   /* that PE 0, which has greeted us, may take to let us in; */
    TURN_SECONDS = 3,      /* less where another address has sent a HELLO, too: PE 0 waits 5 s
                            * for the JOIN there */
    CONNECT_MS = 2000,     /* that a connection may take to be made, before it is started anew:
                            * the system repeats its attempt more and more seldom while many
                            * connect to PE 0 */
    PAUSE_MS = 100,        /* before an address is tried again */
};

/* One address of PE 0 that is being tried. */
struct attempt {
    int fd; /* -1: not started, or failed */
    bool started, connected;
    bool greeted;   /* a HELLO has arrived, which is in `in` until the JOIN is sent */
    bool asked;     /* the JOIN is sent, at one address at a time */
    bool again;     /* PE 0 may be at this address: it has closed the connection, perhaps to make
                     * room */
    bool hangs_up;  /* it has closed one, and may be too busy to accept another */
    int unanswered; /* how often a JOIN there had no response */
    uint64_t since; /* ns, of the last change */
    int error;      /* errno; 0: closed, or not GSHMEM */
    char text[64]; /* the address */
    unsigned char nonce[UID_NONCE_BYTES]; /* of the HELLO that we have answered */
    size_t have;
    unsigned char in[sizeof(struct uid_header) + sizeof(struct uid_hello)];
};

static_assert(sizeof(struct uid_welcome) <= sizeof(struct uid_hello), "either fits");

static void join_give_up(struct attempt *a, int error)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    a->error = error;
    a->since = clock_ns();
    a->unanswered += a->asked;
    a->connected = a->greeted = a->asked = false;
}

/* The same, but the address is tried again. */
static void put_off(struct attempt *a, int error)
{
    join_give_up(a, error);
    a->again = true;
    a->hangs_up |= error == 0 || error == ECONNRESET || error == EPIPE;
}

static void join_start(struct attempt *a, const struct uid_id *id, int i)
{
    struct sockaddr_storage to;
    socklen_t bytes = uid_address(id, i, &to);

    *a = (struct attempt){.fd = -1, .started = true, .since = clock_ns(), .hangs_up = a->hangs_up,
                          .unanswered = a->unanswered};
    uid_address_text(&to, a->text, sizeof a->text);
    a->fd =
        descriptor_keep(system_socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (a->fd < 0)
        a->error = errno;
    else if (system_connect(a->fd, (struct sockaddr *)&to, bytes) != 0 && errno != EINPROGRESS)
        join_give_up(a, errno);
}

static void join_connected(struct attempt *a)
{
    int error = 0, on = 1;
    socklen_t bytes = sizeof error;

    system_getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error) {
        join_give_up(a, error);
        return;
    }
    a->connected = true;
    system_setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Reads on until the frame of a type whose payload has so many bytes is in a->in. */
static bool join_receive(struct attempt *a, uint32_t type, size_t payload)
{
    struct uid_header h;
    const size_t want = sizeof h + payload;
    ssize_t n = system_recv(a->fd, a->in + a->have, want - a->have, MSG_DONTWAIT);

    if (n > 0)
        a->have += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        put_off(a, n == 0 ? 0 : errno);
    if (a->fd < 0 || a->have < want)
        return false;
    memcpy(&h, a->in, sizeof h);
    if (h.type == type && h.bytes == payload)
        return true;
    join_give_up(a, 0);
    return false;
}

/* Continues an attempt that poll has an event for; true when the PE 0 that made the id has sent its
 * proof. Nothing else that arrives is believed, an ABORT neither, as any process may have that
 * address. */
static bool join_go_on(const struct uid *u, struct attempt *a, const struct uid_join *mine)
{
    struct uid_welcome welcome;
    char byte;

    if (!a->connected) {
        join_connected(a);
    } else if (!a->greeted) {
        a->greeted = join_receive(a, UID_HELLO, sizeof(struct uid_hello));
        a->since = clock_ns();
    } else if (!a->asked) {
        ssize_t n = system_recv(a->fd, &byte, 1, MSG_DONTWAIT);
        if (n == 0)
            put_off(a, 0); /* we have let it wait for too long */
        else if (n > 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
            join_give_up(a, n > 0 ? 0 : errno);
    } else if (join_receive(a, UID_WELCOME, sizeof welcome)) {
        memcpy(&welcome, a->in + sizeof(struct uid_header), sizeof welcome);
        if (uid_proof_equal(welcome.proof, uid_welcome_proof(u->id.secret, a->nonce, mine)))
            return true;
        join_give_up(a, 0);
    }
    return false;
}

static void join_ask(const struct uid *u, struct attempt *a, const struct uid_join *mine)
{
    struct uid_join join = *mine;

    memcpy(a->nonce, a->in + sizeof(struct uid_header) + offsetof(struct uid_hello, nonce),
           sizeof a->nonce);
    uid_proof_set(join.proof, uid_join_proof(u->id.secret, a->nonce, &join));
    a->asked = true;
    a->have = 0;
    a->since = clock_ns();
    /* A new connection takes it without waiting. */
    if (uid_wire_send(a->fd, UID_JOIN, &join, sizeof join, 0) != 0)
        put_off(a, errno);
}

/* Sends a JOIN at one address after the other, since PE 0 may have several of them and keeps the
 * connection on which a JOIN has arrived last. An address that responds late, and so may not be PE
 * 0's, makes room for one where fewer JOINs were sent. */
static void ask_in_turn(const struct uid *u, struct attempt *tried, const struct uid_join *mine)
{
    struct attempt *asked = NULL, *next = NULL;

    for (int i = 0; i < u->id.n_addresses; i++) {
        struct attempt *a = &tried[i];
        if (a->fd < 0 || !a->greeted)
            continue;
        if (a->asked)
            asked = a;
        else if (!next || a->unanswered < next->unanswered ||
                 (a->unanswered == next->unanswered && a->since < next->since))
            next = a;
    }
    if (asked && clock_ns() - asked->since < (next ? TURN_SECONDS : ANSWER_SECONDS) * 1000000000ull)
        return;
    if (asked)
        put_off(asked, ETIMEDOUT);
    if (next)
        join_ask(u, next, mine);
}

static gshmem_status_t not_found(struct uid *u, const struct attempt *tried, bool late)
{
    char text[400] = "";
    size_t used = 0;

    for (int i = 0; i < u->id.n_addresses && used < sizeof text; i++) {
        const struct attempt *a = &tried[i];
        const char *why = a->hangs_up   ? "it closes connections"
                          : a->fd >= 0  ? a->connected ? "no word from it" : "no connection"
                          : !a->started ? "not tried"
                          : a->error    ? strerror(a->error)
                                        : "somebody else listens there";
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s (%s)", i ? ", " : "",
                                 a->text, why);
    }
    if (late)
        return u->core.fail(
            GSHMEM_ERR_TIMEOUT,
            "unique id: PE 0 did not answer within %d s (GSHMEM_INIT_TIMEOUT) at %s: "
            "has it called gshmem_init_attr?",
            u->core.timeout_seconds, text);
    return u->core.fail(GSHMEM_ERR_UNREACHABLE,
                        "unique id: PE 0 cannot be reached at any of its addresses: %s", text);
}

/* Tries addresses again that may be PE 0's; starts the next when those before it have failed or
 * take long. True while any attempt is in progress. */
static bool join_start_next(struct uid *u, struct attempt *tried, uint64_t *last)
{
    uint64_t now = clock_ns();
    bool open = false;

    for (int i = 0; i < u->id.n_addresses; i++) {
        if (tried[i].fd >= 0 && !tried[i].connected &&
            now - tried[i].since > CONNECT_MS * 1000000ull)
            put_off(&tried[i], ETIMEDOUT);
        if (tried[i].fd < 0 && tried[i].again && now - tried[i].since > PAUSE_MS * 1000000ull)
            join_start(&tried[i], &u->id, i);
        if (!tried[i].started && (!open || clock_ns() - *last > NEXT_ADDRESS_MS * 1000000ull)) {
            join_start(&tried[i], &u->id, i);
            *last = clock_ns();
        }
        open |= tried[i].fd >= 0 || tried[i].again;
    }
    return open;
}

/* Tries PE 0's addresses until one has it: the first that greets us and knows the secret. */
static gshmem_status_t find_root(struct uid *u, struct attempt *tried, const struct uid_join *mine)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds), last = 0;

    while (join_start_next(u, tried, &last)) {
        struct pollfd polled[UID_ADDRESSES];
        int left = stream_left_ms(deadline);

        if (left == 0)
            return not_found(u, tried, true);
        for (int i = 0; i < UID_ADDRESSES; i++)
            polled[i] =
                (struct pollfd){.fd = tried[i].fd, .events = tried[i].connected ? POLLIN : POLLOUT};
        system_poll(polled, UID_ADDRESSES, (left < PAUSE_MS ? left : PAUSE_MS) * (int64_t)CLOCK_MS);
        for (int i = 0; i < UID_ADDRESSES; i++) {
            if (tried[i].fd < 0 || !polled[i].revents || !join_go_on(u, &tried[i], mine))
                continue;
            u->root_fd = tried[i].fd;
            tried[i].fd = -1;
            return GSHMEM_OK;
        }
        ask_in_turn(u, tried, mine);
    }
    return not_found(u, tried, false);
}

static gshmem_status_t join_take_nodes(struct uid *u)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds + UID_GRACE_SECONDS);
    int n = u->base.n_pes, most = -1;
    struct uid_header h;
    gshmem_status_t status =
        uid_wire_expect(u, u->root_fd, UID_NODES, "the map of nodes", deadline, &h);

    if (status)
        return status;
    ssize_t got = stream_read_all(u->root_fd, u->node, (size_t)n * sizeof *u->node, deadline);
    if (got <= 0)
        return uid_wire_no_frame(u, got, "the map of nodes");
    for (int pe = 0; pe < n; pe++) {
        if (u->node[pe] < 0 || u->node[pe] > most + 1)
            return u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                                "unique id: PE 0 says PE %d is on node %d of %d", pe, u->node[pe],
                                most + 1);
        most = u->node[pe] > most ? u->node[pe] : most;
    }
    u->base.n_hosts = most + 1;
    return GSHMEM_OK;
}

gshmem_status_t uid_join_open(struct uid *u)
{
    struct attempt tried[UID_ADDRESSES];
    struct uid_join mine = {.version = UID_VERSION, .pe = u->base.pe, .n_pes = u->base.n_pes};

    memset(tried, 0, sizeof tried);
    for (int i = 0; i < UID_ADDRESSES; i++)
        tried[i].fd = -1;
    nodes_own_name(mine.machine);
    if (!system_random(mine.nonce, sizeof mine.nonce))
        return u->core.fail(GSHMEM_ERR_SYSTEM, "unique id: no random bytes from the system: %s",
                            strerror(errno));
    gshmem_status_t status = find_root(u, tried, &mine);
    for (int i = 0; i < UID_ADDRESSES; i++)
        join_give_up(&tried[i], 0);
    return status ? status : join_take_nodes(u);
}
