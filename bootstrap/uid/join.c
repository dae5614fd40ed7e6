/* PE 1 and on: find PE 0, prove who they are, and take part in its rounds. */
#define _GNU_SOURCE
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
#include "bootstrap/uid/uid.h"
#include "runtime/base/clock.h"

enum {
    NEXT_ADDRESS_MS = 300, /* how long an address is given before the next is tried beside it */
    ANSWER_SECONDS = 10,   /* that PE 0, which has greeted us, may take to let us in */
    GRACE_SECONDS = 5,     /* that we wait longer than PE 0, so that its explanation arrives */
};

/* One address of PE 0 that is being tried. */
struct attempt {
    int fd; /* -1: not started, or failed */
    bool started, connected;
    int error;     /* errno; 0: closed, or not GSHMEM */
    char text[64]; /* the address */
    size_t have;
    unsigned char in[sizeof(struct uid_header) + sizeof(struct uid_hello)];
};

static void give_up(struct attempt *a, int error)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    a->error = error;
}

static void start(struct attempt *a, const struct uid_id *id, int i)
{
    struct sockaddr_storage to;
    socklen_t bytes = uid_address(id, i, &to);

    a->started = true;
    uid_address_text(&to, a->text, sizeof a->text);
    a->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        a->error = errno;
    else if (connect(a->fd, (struct sockaddr *)&to, bytes) != 0 && errno != EINPROGRESS)
        give_up(a, errno);
}

/* Goes on with an attempt that poll has an event for; true when PE 0's HELLO is there. */
static bool go_on(struct attempt *a)
{
    int error = 0, on = 1;
    socklen_t bytes = sizeof error;

    if (!a->connected) {
        getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (error)
            give_up(a, error);
        a->connected = !error;
        if (a->connected)
            setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return false;
    }
    ssize_t n = recv(a->fd, a->in + a->have, sizeof a->in - a->have, MSG_DONTWAIT);
    if (n > 0)
        a->have += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        give_up(a, n == 0 ? 0 : errno);
    return a->fd >= 0 && a->have == sizeof a->in;
}

/* What PE 0 says instead of what was expected: an ABORT has the reason, all else is wrong. */
static gshmem_status_t instead(struct uid *u, int fd, const struct uid_header *h,
                               const char *wanted, uint64_t deadline)
{
    struct uid_abort a;

    u->broken = true;
    if (h->type == UID_ABORT && h->bytes == sizeof a &&
        stream_read_all(fd, &a, sizeof a, deadline) > 0 && uid_abort_valid(&a)) {
        bool known = a.status > GSHMEM_OK && a.status <= GSHMEM_ERR_SYSTEM;
        return u->core.fail(known ? (gshmem_status_t)a.status : GSHMEM_ERR_ABORTED,
                            "unique id: PE 0 says: %s", a.text);
    }
    return u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                        "unique id: expected %s from PE 0, got a frame of type 0x%x with %u bytes",
                        wanted, h->type, h->bytes);
}

static gshmem_status_t no_frame(struct uid *u, ssize_t n, const char *wanted)
{
    u->broken = true;
    if (n == 0 || errno == ECONNRESET)
        return u->core.fail(GSHMEM_ERR_PEER_DEAD,
                            "unique id: PE 0 has left where %s was expected from it", wanted);
    if (errno == ETIMEDOUT)
        return u->core.fail(GSHMEM_ERR_TIMEOUT,
                            "unique id: no %s from PE 0 within %d s (GSHMEM_INIT_TIMEOUT)", wanted,
                            u->core.timeout_seconds);
    return u->core.fail(GSHMEM_ERR_BOOTSTRAP, "unique id: cannot read %s from PE 0: %s", wanted,
                        strerror(errno));
}

/* Reads the header of a frame that must be of this type. */
static gshmem_status_t expect(struct uid *u, int fd, uint32_t type, const char *wanted,
                              uint64_t deadline, struct uid_header *h)
{
    ssize_t n = stream_read_all(fd, h, sizeof *h, deadline);

    if (n <= 0)
        return no_frame(u, n, wanted);
    if (h->type != type || !uid_header_valid(h, u->base.n_pes))
        return instead(u, fd, h, wanted, deadline);
    return GSHMEM_OK;
}

/* Answers PE 0's HELLO. *is_ours is false if this is not the PE 0 that made our id. */
static gshmem_status_t introduce(struct uid *u, struct attempt *a, const struct uid_join *mine,
                                 bool *is_ours)
{
    uint64_t deadline = stream_deadline(ANSWER_SECONDS);
    struct uid_join join = *mine;
    struct uid_welcome welcome;
    struct uid_hello hello;
    struct uid_header h;

    *is_ours = false;
    memcpy(&h, a->in, sizeof h);
    memcpy(&hello, a->in + sizeof h, sizeof hello);
    if (h.type != UID_HELLO || h.bytes != sizeof hello)
        return GSHMEM_OK;
    uid_proof_set(join.proof, uid_join_proof(u->id.secret, hello.nonce, &join));
    if (uid_send(a->fd, UID_JOIN, &join, sizeof join, deadline) != 0 ||
        stream_read_all(a->fd, &h, sizeof h, deadline) <= 0)
        return GSHMEM_OK;
    if (h.type == UID_ABORT) {
        *is_ours = true;
        return instead(u, a->fd, &h, "a welcome", deadline);
    }
    *is_ours = h.type == UID_WELCOME && h.bytes == sizeof welcome &&
               stream_read_all(a->fd, &welcome, sizeof welcome, deadline) > 0 &&
               uid_proof_equal(welcome.proof, uid_welcome_proof(u->id.secret, hello.nonce, &join));
    return GSHMEM_OK;
}

static gshmem_status_t not_found(struct uid *u, const struct attempt *tried, bool late)
{
    char text[400] = "";
    size_t used = 0;

    for (int i = 0; i < u->id.n_addresses && used < sizeof text; i++) {
        const struct attempt *a = &tried[i];
        const char *why = a->fd >= 0    ? a->connected ? "no word from it" : "no connection"
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

/* Starts the next address when those before it have failed or take long. Is any under way? */
static bool start_next(struct uid *u, struct attempt *tried, uint64_t *last)
{
    bool open = false;

    for (int i = 0; i < u->id.n_addresses; i++) {
        if (!tried[i].started && (!open || clock_ns() - *last > NEXT_ADDRESS_MS * 1000000ull)) {
            start(&tried[i], &u->id, i);
            *last = clock_ns();
        }
        open |= tried[i].fd >= 0;
    }
    return open;
}

/* Tries PE 0's addresses until one has it: the first that greets us and knows the secret. */
static gshmem_status_t find_root(struct uid *u, struct attempt *tried, const struct uid_join *mine)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds), last = 0;

    while (start_next(u, tried, &last)) {
        struct pollfd polled[UID_ADDRESSES];
        int left = stream_left_ms(deadline);

        if (left == 0)
            return not_found(u, tried, true);
        for (int i = 0; i < UID_ADDRESSES; i++)
            polled[i] =
                (struct pollfd){.fd = tried[i].fd, .events = tried[i].connected ? POLLIN : POLLOUT};
        poll(polled, UID_ADDRESSES, left < NEXT_ADDRESS_MS ? left : NEXT_ADDRESS_MS);
        for (int i = 0; i < UID_ADDRESSES; i++) {
            bool is_ours;
            if (tried[i].fd < 0 || !polled[i].revents || !go_on(&tried[i]))
                continue;
            gshmem_status_t status = introduce(u, &tried[i], mine, &is_ours);
            if (status)
                return status;
            if (is_ours) {
                u->root_fd = tried[i].fd;
                tried[i].fd = -1;
                return GSHMEM_OK;
            }
            give_up(&tried[i], 0);
        }
    }
    return not_found(u, tried, false);
}

static gshmem_status_t take_hosts(struct uid *u)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds + GRACE_SECONDS);
    int n = u->base.n_pes, most = -1;
    struct uid_header h;
    gshmem_status_t status = expect(u, u->root_fd, UID_HOSTS, "the map of hosts", deadline, &h);

    if (status)
        return status;
    ssize_t got = stream_read_all(u->root_fd, u->host, (size_t)n * sizeof *u->host, deadline);
    if (got <= 0)
        return no_frame(u, got, "the map of hosts");
    for (int pe = 0; pe < n; pe++) {
        if (u->host[pe] < 0 || u->host[pe] > most + 1)
            return u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                                "unique id: PE 0 says PE %d is on host %d of %d", pe, u->host[pe],
                                most + 1);
        most = u->host[pe] > most ? u->host[pe] : most;
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
    if (gethostname(mine.host, sizeof mine.host - 1) != 0)
        mine.host[0] = 0;
    if (!uid_random(mine.nonce, sizeof mine.nonce))
        return u->core.fail(GSHMEM_ERR_SYSTEM, "unique id: no random bytes from the system: %s",
                            strerror(errno));
    gshmem_status_t status = find_root(u, tried, &mine);
    for (int i = 0; i < UID_ADDRESSES; i++)
        give_up(&tried[i], 0);
    return status ? status : take_hosts(u);
}

gshmem_status_t uid_join_fence(struct uid *u)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds + GRACE_SECONDS);
    struct uid_blob blob = {.round = u->round};
    struct uid_header h;

    memcpy(blob.bytes, u->own, u->own_bytes);
    /* If PE 0 has ended the job, its reason is there to read although this fails. */
    int sent = uid_send(u->root_fd, UID_BLOB, &blob, sizeof blob.round + u->own_bytes, deadline);
    int error = errno;
    if (sent != 0 && error == ETIMEDOUT)
        return no_frame(u, -1, "room for a blob");
    gshmem_status_t status = expect(u, u->root_fd, UID_ROUND, "all blobs", deadline, &h);
    if (status)
        return status;
    if (!uid_room(u, h.bytes)) {
        u->broken = true;
        return u->core.fail(GSHMEM_ERR_MEMORY, "unique id: out of memory for %u bytes", h.bytes);
    }
    ssize_t n = stream_read_all(u->root_fd, u->told, h.bytes, deadline);
    if (n <= 0)
        return no_frame(u, n, "all blobs");
    if (!uid_round_decode(u->told, h.bytes, u->round, u->offset, u->base.n_pes)) {
        u->broken = true;
        return u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                            "unique id: what PE 0 sends is not round %u of the exchange", u->round);
    }
    return GSHMEM_OK;
}
