#define _GNU_SOURCE
#include "runtime/node/handover.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"
#include "runtime/base/system.h"

struct letter {
    unsigned char token[16]; /* the receiver's */
    int32_t index;           /* the sender's */
    uint32_t round;
    unsigned char text[HANDOVER_LETTER_MAX];
};

_Static_assert(sizeof(struct handover_address) == 32, "shown to others as bytes");

static gshmem_status_t handover_open_one(struct handover *h, int which)
{
    struct sockaddr_storage name = {.ss_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t);
    const size_t header = offsetof(struct sockaddr_un, sun_path) + 1;
    int on = 1;
    int fd = h->fd[which] =
        descriptor_keep(system_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK));

    /* With an address of the family alone, the kernel chooses a name that is free. */
    if (fd < 0 || system_setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        system_bind(fd, &name, &length, 0) != 0 || length <= header ||
        length - header > sizeof h->address.name[which])
        return fail(GSHMEM_ERR_SYSTEM, "a Unix socket for this node's PEs: %s", log_errno(errno));
    h->address.name_bytes[which] = (uint8_t)(length - header);
    memcpy(h->address.name[which], (const char *)&name + header, length - header);
    return GSHMEM_OK;
}

gshmem_status_t handover_open(struct handover *h, int n)
{
    gshmem_status_t status;

    *h = (struct handover){.fd = {-1, -1}, .marks = calloc(2 * (size_t)n, sizeof *h->marks)};
    if (!h->marks)
        return fail(GSHMEM_ERR_MEMORY, "a Unix socket for this node's PEs: out of memory");
    if (!system_random(h->address.token, sizeof h->address.token))
        status = fail(GSHMEM_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    else if (!(status = handover_open_one(h, 0)) && !(status = handover_open_one(h, 1)))
        return GSHMEM_OK;
    handover_close(h);
    return status;
}

void handover_close(struct handover *h)
{
    for (int i = 0; i < 2; i++) {
        if (h->fd[i] >= 0)
            close(h->fd[i]);
        h->fd[i] = -1;
    }
    free(h->marks);
    h->marks = NULL;
}

/* ---- One letter ---- */

/* True: it was sent, or its receiver is gone, which the wait for its letter will find. */
static bool handover_send_letter(const struct handover *h, const struct handover_address *to,
                                 struct letter *l, size_t bytes, int fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int which = h->round % 2;
    union descriptor_control control = {.space = {0}};
    struct iovec data = {l, offsetof(struct letter, text) + bytes};
    struct msghdr message = {.msg_name = &name, .msg_iov = &data, .msg_iovlen = 1};

    if (to->name_bytes[which] > sizeof to->name[which])
        return true;
    memcpy(name.sun_path + 1, to->name[which], to->name_bytes[which]);
    message.msg_namelen =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + to->name_bytes[which]);
    memcpy(l->token, to->token, sizeof l->token);
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof fd);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    return system_sendmsg(h->fd[which], &message, MSG_NOSIGNAL) >= 0 ||
           !(errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM ||
             errno == ETOOMANYREFS);
}

static bool is_ours(const struct handover *h, const struct letter *l, int n)
{
    unsigned char difference = 0;

    for (size_t i = 0; i < sizeof l->token; i++)
        difference |= l->token[i] ^ h->address.token[i];
    return difference == 0 && l->index >= 0 && l->index < n && l->round == h->round;
}

/* Reads one letter if there is one; false: there is none. *index: its sender, -1: not of this
 * exchange. */
static bool read_letter(const struct handover *h, int n, size_t bytes, struct letter *l, int *index,
                        int *fd)
{
    union descriptor_control control;
    struct iovec data = {l, sizeof *l};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};
    ssize_t got = system_recvmsg(h->fd[h->round % 2], &message, MSG_CMSG_CLOEXEC);

    if (got < 0)
        return false;
    *fd = descriptor_take(&message);
    *index = descriptor_sender_is_ours(&message) &&
                     (size_t)got == offsetof(struct letter, text) + bytes && is_ours(h, l, n)
                 ? l->index
                 : -1;
    return true;
}

/* ---- All of them ---- */

struct exchange {
    struct handover *h;
    const struct handover_circle *circle;
    struct letter mine;
    size_t bytes;
    int fd;
    char *letters;
    int *fds;
    bool *sent, *come;
    int missing; /* letters to send, and to receive */
};

static const struct handover_address *handover_address_of(const struct handover_circle *c, int i)
{
    return (const struct handover_address *)((const char *)c->address + (size_t)i * c->step);
}

static void send_some(struct exchange *e)
{
    for (int i = 0; i < e->circle->n; i++) {
        if (!e->sent[i] && handover_send_letter(e->h, handover_address_of(e->circle, i), &e->mine,
                                                e->bytes, e->fd)) {
            e->sent[i] = true;
            e->missing--;
        }
    }
}

static void take_some(struct exchange *e)
{
    struct letter l;
    int index, fd;

    while (read_letter(e->h, e->circle->n, e->bytes, &l, &index, &fd)) {
        if (index < 0 || e->come[index]) {
            if (fd >= 0)
                close(fd);
            if (e->h->refused++ == 0) /* one line is enough to start an investigation */
                log_warn("a process that is not of this job wrote to this PE: ignored (said once)");
            continue;
        }
        memcpy(e->letters + (size_t)index * e->bytes, l.text, e->bytes);
        e->fds[index] = fd;
        e->come[index] = true;
        e->missing--;
    }
}

/* Letters that could not be sent are tried again soon. */
static bool exchange_is_over(void *context)
{
    struct exchange *e = context;
    struct pollfd arrival = {.fd = e->h->fd[e->h->round % 2], .events = POLLIN};

    send_some(e);
    take_some(e);
    if (e->missing)
        system_poll(&arrival, 1, CLOCK_MS);
    return !e->missing;
}

gshmem_status_t handover_exchange(struct handover *h, const struct handover_circle *circle,
                                  const char *call, const void *mine, size_t bytes, int fd,
                                  void *letters, int *fds)
{
    const int n = circle->n;
    struct exchange e = {.h = h, .circle = circle, .bytes = bytes, .fd = fd, .letters = letters,
                         .fds = fds, .missing = 2 * (n - 1)};
    gshmem_status_t status;

    h->round++;
    e.mine.index = circle->index;
    e.mine.round = h->round;
    memcpy(e.mine.text, mine, bytes);
    e.sent = memset(h->marks, 0, 2 * (size_t)n * sizeof *h->marks);
    e.come = e.sent + n;
    for (int i = 0; i < n; i++)
        fds[i] = -1;
    e.sent[circle->index] = e.come[circle->index] = true;
    status = circle->await(call, circle->team, 0, exchange_is_over, &e);
    for (int i = 0; status && i < n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
    return status;
}
