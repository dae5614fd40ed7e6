/* A transport as small as one can be: messages over sockets of this machine, for ../conform.
 *
 * A PE opens a link to each PE that it requests something of. Requests travel on it in their
 * order, and the answers come back on it in the same order. A message is copied as a whole before
 * it is sent, and has come as a whole before it is served. Peers are trusted, and memory never runs
 * out (CHECK). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"
#include "gshmem/base.h"
#include "runtime/base/atomic_type.h"
#include "transport/segment.h"

enum { QUEUE = 64 /* requests to a PE that are not done */, ROUND = 64 /* pieces from one link */ };
/* What else a message is, besides a request of enum transport_kind; the last two are answers. */
enum { NOTE = TRANSPORT_ATOMIC + 1, TOLD, HELLO, BYE, DONE, REFUSED };
enum { LOST = 1, TELLS = 2 }; /* what this PE knows of another: it is lost; others are told so */

struct head { /* of a message, with the request's values; `data` bytes follow */
    uint8_t kind, segment, signal_op, signal_segment, amo, type;
    uint64_t offset, bytes, data;
    uint64_t a, b; /* HELLO, TOLD: a PE; DONE: the old value and a status */
};

struct link {
    struct link *next;
    int fd, pe; /* -1: it has ended; it has not said hello yet */
    bool mine;  /* opened by this PE, for its requests; else for the other's */
    bool bye;   /* the peer has said that it leaves */
    gshmem_status_t failure;
    char *out, *in; /* what is still to be sent; the message that is coming */
    size_t out_bytes, in_bytes;
    struct transport_request request[QUEUE]; /* of this PE's, in order, from done to posted */
    uint32_t posted, done;
};

struct toy {
    struct transport base;
    struct transport_config config;
    int door, epoll;
    struct link *links;
    unsigned char known[]; /* [n_pes] */
};

GSHMEM_API extern const struct transport_ops gshmem_transport;

static struct link *add_link(struct toy *t, int fd, int pe, bool mine)
{
    struct epoll_event edges = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
    struct link *l = calloc(1, sizeof *l);

    CHECK(l && epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &edges) == 0);
    *l = (struct link){.next = t->links, .fd = fd, .pe = pe, .mine = mine};
    return t->links = l;
}

/* Ends it and its requests. why: what makes the PE lost; NULL: it is not. */
static void end_link(struct toy *t, struct link *l, gshmem_status_t status, const char *why)
{
    if (l->failure)
        return;
    if (l->bye) { /* who has left in good order is missed only if something is asked of it */
        status = GSHMEM_ERR_UNREACHABLE;
        why = l->done == l->posted ? NULL : why;
    }
    l->failure = status; /* of what `done` posts, too */
    close(l->fd);
    l->fd = -1;
    while (l->done != l->posted) {
        const struct transport_request r = l->request[l->done++ % QUEUE];
        if (r.done)
            r.done(r.tag, status);
    }
    if (!why || l->pe < 0 || t->known[l->pe] & LOST)
        return;
    t->known[l->pe] |= LOST;
    t->config.lost(t->config.context, l->pe, status, why);
}

/* An error is noticed when the link is read, behind what the peer has still said. */
static void send_out(struct link *l)
{
    ssize_t n;

    while (l->fd >= 0 && l->out_bytes && (n = send(l->fd, l->out, l->out_bytes, MSG_NOSIGNAL)) > 0)
        memmove(l->out, l->out + n, l->out_bytes -= (size_t)n);
}

static void say(struct link *l, struct head head, const void *data)
{
    CHECK((l->out = realloc(l->out, l->out_bytes + sizeof head + head.data)));
    memcpy(l->out + l->out_bytes, &head, sizeof head);
    if (head.data)
        memcpy(l->out + l->out_bytes + sizeof head, data, head.data);
    l->out_bytes += sizeof head + head.data;
    send_out(l);
}

static void say_pe(struct link *l, uint8_t kind, int pe)
{
    say(l, (struct head){.kind = kind, .a = (uint64_t)pe}, NULL);
}

static gshmem_status_t open_link(struct toy *t, int pe, struct link **out)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t bytes = 0;
    const gshmem_status_t status =
        t->config.find(t->config.context, pe, to.sun_path, sizeof to.sun_path, &bytes);

    if (status) /* TRANSPORT_FULL, too */
        return status;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct link *l = *out = add_link(t, fd, pe, true);
    if (!bytes || connect(fd, (struct sockaddr *)&to, (socklen_t)(sizeof to.sun_family + bytes)))
        end_link(t, l, GSHMEM_ERR_UNREACHABLE, "toy: nobody listens at its address");
    say_pe(l, HELLO, t->config.pe);
    for (int i = 0; i < t->config.n_pes; i++) {
        if (t->known[i] & TELLS)
            say_pe(l, TOLD, i);
    }
    return GSHMEM_OK;
}

static gshmem_status_t toy_post(struct transport *base, const struct transport_request *r)
{
    struct toy *t = (struct toy *)base;
    struct link *l = t->links;
    const struct head head = {r->kind, r->segment, r->signal_op, r->signal_segment, r->amo, r->type,
                              r->offset, r->bytes,
                              r->kind == TRANSPORT_PUT || r->kind == NOTE ? r->bytes : 0,
                              r->operand, r->compare /* or a signal's offset and value */};
    gshmem_status_t status;

    while (l && !(l->mine && l->pe == r->pe))
        l = l->next;
    if (t->known[r->pe] & LOST)
        return GSHMEM_ERR_PEER_DEAD;
    if (!l && (status = open_link(t, r->pe, &l)))
        return status;
    if (l->failure || l->posted - l->done == QUEUE)
        return l->failure ? l->failure : TRANSPORT_FULL;
    say(l, head, r->local);
    l->request[l->posted++ % QUEUE] = *r;
    return GSHMEM_OK;
}

static void take_answer(struct toy *t, struct link *l, struct head h, const char *data)
{
    const struct transport_request r = l->request[l->done % QUEUE];

    if (h.kind == REFUSED) {
        end_link(t, l, GSHMEM_ERR_PEER_DEAD, NULL);
        t->config.refused(t->config.context, l->pe);
        return;
    }
    l->done++;
    if (h.data)
        memcpy(r.local, data, h.data);
    if (r.kind == TRANSPORT_ATOMIC && r.old)
        *r.old = h.a;
    if (r.done)
        r.done(r.tag, (gshmem_status_t)h.b);
}

static void serve(struct toy *t, struct link *l, struct head h, const char *data)
{
    const struct transport_config *c = &t->config;
    const bool is_atomic = h.kind == TRANSPORT_ATOMIC;
    const size_t word = is_atomic && h.amo <= GSHMEM_AMO_XOR ? atomic_type_bytes(h.type) : 0;
    char *at = word        ? segment_at_aligned(c, h.segment, h.offset, word)
               : is_atomic ? NULL
                           : segment_at(c, h.segment, h.offset, h.bytes);
    char *flag = h.signal_op ? segment_at_aligned(c, h.signal_segment, h.a, 8) : NULL;
    struct head answer = {.kind = DONE};

    if (h.kind == NOTE) {
        c->received(c->context, l->pe, data, h.data);
    } else if (!at || (h.signal_op && !flag)) {
        answer.b = GSHMEM_ERR_ARGUMENT;
    } else if (h.kind == TRANSPORT_GET) {
        answer.data = h.bytes;
    } else if (h.kind == TRANSPORT_ATOMIC) {
        answer.a = c->apply(c->context, (enum gshmem_amo)h.amo, h.type, at, h.a, h.b);
    } else {
        if (h.data)
            segment_store(at, (const unsigned char *)data, h.data);
        if (flag)
            segment_signal((uint64_t *)(void *)flag, h.signal_op, h.b);
    }
    say(l, answer, at);
}

static void take(struct toy *t, struct link *l, struct head h, const char *data)
{
    if (h.kind == BYE)
        l->bye = true;
    else if (h.kind == HELLO && t->known[l->pe = (int)h.a] & LOST)
        say_pe(l, REFUSED, t->config.pe);
    else if (!l->mine && t->known[l->pe] & LOST)
        return; /* nothing is taken from it any more */
    else if (h.kind == TOLD)
        t->config.notified(t->config.context, l->pe, (int)h.a);
    else if (l->mine)
        take_answer(t, l, h, data);
    else if (h.kind <= NOTE)
        serve(t, l, h, data);
}

/* Reads on in the message that is coming; whether anything has come. */
static bool read_link(struct toy *t, struct link *l)
{
    struct head *h = (struct head *)(void *)l->in;
    const size_t all = sizeof *h + (l->in_bytes < sizeof *h ? 0 : h->data);

    CHECK((l->in = realloc(l->in, all)));
    h = (struct head *)(void *)l->in;
    const ssize_t n = recv(l->fd, l->in + l->in_bytes, all - l->in_bytes, 0);
    if (n <= 0 && !(n < 0 && errno == EAGAIN))
        end_link(t, l, GSHMEM_ERR_PEER_DEAD, "toy: its socket has ended");
    l->in_bytes += n > 0 ? (size_t)n : 0;
    if (n > 0 && l->in_bytes >= sizeof *h && l->in_bytes == sizeof *h + h->data) {
        l->in_bytes = 0;
        take(t, l, *h, l->in + sizeof *h);
    }
    return n > 0;
}

static gshmem_status_t toy_progress(struct transport *base, int *events)
{
    struct toy *t = (struct toy *)base;
    struct epoll_event e[ROUND];
    int fd;

    *events = epoll_wait(t->epoll, e, ROUND, 0) == ROUND; /* what comes later is told anew */
    while ((fd = accept4(t->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        add_link(t, fd, -1, false);
    for (struct link *l = t->links; l; l = l->next) {
        send_out(l);
        for (int i = 0; i < ROUND && l->fd >= 0 && read_link(t, l); i++)
            ++*events;
    }
    return GSHMEM_OK;
}

static void toy_tell(struct transport *base, int lost)
{
    ((struct toy *)base)->known[lost] |= TELLS;
    for (struct link *l = ((struct toy *)base)->links; l; l = l->next) {
        if (l->mine)
            say_pe(l, TOLD, lost);
    }
}

static gshmem_status_t toy_say(struct transport *base, int pe, const void *note, size_t bytes)
{
    return toy_post(base, &(struct transport_request){.kind = NOTE, .pe = pe, .bytes = bytes,
                                                      .local = (void *)(uintptr_t)note});
}

static void toy_lose(struct transport *base, int pe, gshmem_status_t status)
{
    struct toy *t = (struct toy *)base;

    t->known[pe] |= LOST;
    for (struct link *l = t->links; l; l = l->next) {
        if (l->pe == pe && l->fd >= 0 && !l->mine)
            say_pe(l, REFUSED, t->config.pe);
        if (l->pe == pe)
            end_link(t, l, status, NULL);
    }
}

static int toy_busy(struct transport *base)
{
    const struct link *l = ((struct toy *)base)->links;

    while (l && (l->fd < 0 || (!l->out_bytes && l->posted == l->done)))
        l = l->next;
    return l != NULL;
}

static int toy_wait_fd(struct transport *base)
{
    return ((struct toy *)base)->epoll;
}

static void toy_leave_parent(struct transport *base)
{
    close(((struct toy *)base)->door);
    for (const struct link *l = ((struct toy *)base)->links; l; l = l->next)
        close(l->fd);
}

static void toy_close(struct transport *base)
{
    struct toy *t = (struct toy *)base;

    for (struct link *l; (l = t->links); free(l)) {
        if (l->fd >= 0 && !l->out_bytes)
            say_pe(l, BYE, t->config.pe);
        l->bye = false;
        end_link(t, l, GSHMEM_ERR_ABORTED, NULL);
        t->links = l->next;
        free(l->out);
        free(l->in);
    }
    close(t->door);
    close(t->epoll);
    free(t);
}

static gshmem_status_t toy_open(const struct transport_config *config, struct transport **out)
{
    struct toy *t = calloc(1, sizeof *t + (size_t)config->n_pes);
    const struct sockaddr any = {.sa_family = AF_UNIX}; /* a name of the system's choice */
    struct epoll_event knocks = {.events = EPOLLIN};

    CHECK(t);
    t->base.ops = &gshmem_transport;
    t->config = *config;
    t->door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (bind(t->door, &any, sizeof any.sa_family) || listen(t->door, 4096) ||
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->door, &knocks)) {
        toy_close(&t->base);
        return config->fail(GSHMEM_ERR_SYSTEM, "toy: no socket to listen on");
    }
    *out = &t->base;
    return GSHMEM_OK;
}

static gshmem_status_t toy_address(struct transport *base, void *to, size_t most, size_t *bytes)
{
    const struct toy *t = (struct toy *)base;
    struct sockaddr_un own;
    socklen_t size = sizeof own;

    CHECK(getsockname(t->door, (struct sockaddr *)&own, &size) == 0 && size <= most);
    *bytes = size - sizeof own.sun_family;
    memcpy(to, own.sun_path, *bytes);
    return GSHMEM_OK;
}

static void toy_begin(struct transport *base, const struct transport_config *config)
{
    ((struct toy *)base)->config = *config;
}

const struct transport_ops gshmem_transport = {
    .size = sizeof(struct transport_ops), .version = TRANSPORT_VERSION, .name = "toy",
    .open = toy_open, .address = toy_address, .begin = toy_begin, .close = toy_close,
    .post = toy_post, .progress = toy_progress, .wait_fd = toy_wait_fd, .busy = toy_busy,
    .say = toy_say, .tell = toy_tell, .lose = toy_lose, .leave_parent = toy_leave_parent,
};
