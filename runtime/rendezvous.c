#define _GNU_SOURCE
#include "runtime/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"

struct question {
    unsigned char token[16];
    int32_t index;
};

_Static_assert(sizeof(struct rendezvous_address) == 32, "published as bytes");
_Static_assert(sizeof(struct question) == 20, "sent as bytes");

static socklen_t socket_address(const struct rendezvous_address *from, struct sockaddr_un *to)
{
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    memcpy(to->sun_path + 1, from->name, from->name_bytes); /* [0] is 0: an abstract name */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + from->name_bytes);
}

gshmem_status_t rendezvous_open(struct rendezvous *r)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof name;
    const size_t header = offsetof(struct sockaddr_un, sun_path) + 1;

    memset(&r->address, 0, sizeof r->address);
    if (getrandom(r->address.token, sizeof r->address.token, 0) != sizeof r->address.token)
        return fail(GSHMEM_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "a Unix socket for this host's PEs: %s", strerror(errno));
    /* An address of the family alone lets the kernel choose a name that is free. */
    if (bind(r->fd, (struct sockaddr *)&name, sizeof(sa_family_t)) != 0 ||
        getsockname(r->fd, (struct sockaddr *)&name, &length) != 0 || length <= header ||
        length - header > sizeof r->address.name || listen(r->fd, 4096) != 0) {
        int error = errno;
        close(r->fd);
        return fail(GSHMEM_ERR_SYSTEM, "a Unix socket for this host's PEs: %s", strerror(error));
    }
    r->address.name_bytes = (uint8_t)(length - header);
    memcpy(r->address.name, name.sun_path + 1, r->address.name_bytes);
    return GSHMEM_OK;
}

void rendezvous_close(struct rendezvous *r)
{
    close(r->fd);
}

static bool same_token(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;

    for (int i = 0; i < 16; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* Reads one question; the index it comes from, or -1 if it is not one of ours. */
static int read_question(const struct rendezvous *r, int peer, int n)
{
    struct question q;
    struct ucred who;
    socklen_t size = sizeof who;

    if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
        (who.uid != geteuid() && who.uid != 0) || recv(peer, &q, sizeof q, 0) != sizeof q ||
        !same_token(q.token, r->address.token) || q.index < 1 || q.index >= n)
        return -1;
    return q.index;
}

static bool send_letter(int peer, const void *letter, size_t bytes, int descriptor)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = {0}};
    struct iovec data = {(void *)letter, bytes};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    return sendmsg(peer, &message, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* A stranger may connect and say nothing: it gets this long, and the others wait that long once. */
static void limit_time(int fd, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static gshmem_status_t refuse_missing(const bool *served, const int *pe, int n, int seconds)
{
    char list[160] = "";
    size_t used = 0;

    for (int i = 1; i < n && used < sizeof list - 16; i++) {
        if (!served[i])
            used += (size_t)snprintf(list + used, sizeof list - used, " %d", pe[i]);
    }
    return fail(GSHMEM_ERR_TIMEOUT,
                "start-up: after %d s these PEs of this host have not come for its memory:%s "
                "(GSHMEM_INIT_TIMEOUT changes how long to wait)",
                seconds, list);
}

gshmem_status_t rendezvous_serve(struct rendezvous *r, const int *pe, int n, int timeout_seconds,
                                 const void *letter, size_t letter_bytes, int descriptor)
{
    uint64_t end = clock_ns() + (uint64_t)timeout_seconds * 1000000000u;
    bool *served = calloc((size_t)n, sizeof *served);
    gshmem_status_t status = GSHMEM_OK;
    int missing = n - 1;

    if (!served)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    while (missing > 0) {
        uint64_t now = clock_ns();
        struct pollfd ready = {.fd = r->fd, .events = POLLIN};

        if (now >= end) {
            status = refuse_missing(served, pe, n, timeout_seconds);
            break;
        }
        if (poll(&ready, 1, (int)((end - now) / 1000000u) + 1) < 1)
            continue;
        int peer = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0)
            continue;
        limit_time(peer, 1);
        int index = read_question(r, peer, n);
        if (index < 0) {
            log_warn("start-up: a process that is not of this job asked for its memory: refused");
        } else if (send_letter(peer, letter, letter_bytes, descriptor) && !served[index]) {
            served[index] = true;
            missing--;
        }
        close(peer);
    }
    free(served);
    return status;
}

gshmem_status_t rendezvous_ask(const struct rendezvous_address *address, int index,
                               int timeout_seconds, void *letter, size_t letter_bytes,
                               int *descriptor)
{
    struct question q = {.index = index};
    struct sockaddr_un name;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {letter, letter_bytes};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};

    if (address->name_bytes > sizeof address->name)
        return fail(GSHMEM_ERR_BOOTSTRAP, "start-up: the leader of this host published nonsense");
    memcpy(q.token, address->token, sizeof q.token);
    socklen_t length = socket_address(address, &name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "a Unix socket to this host's leader: %s", strerror(errno));
    limit_time(fd, timeout_seconds);

    int got = -1;
    if (connect(fd, (struct sockaddr *)&name, length) == 0 &&
        send(fd, &q, sizeof q, MSG_NOSIGNAL) == sizeof q &&
        recvmsg(fd, &message, MSG_CMSG_CLOEXEC) == (ssize_t)letter_bytes)
        got = descriptor_take(&message);
    int error = errno;
    close(fd);
    if (got < 0)
        return fail(GSHMEM_ERR_BOOTSTRAP,
                    "start-up: no memory from this host's lowest PE: %s. PEs of one host must share "
                    "a network namespace and a user (containers: --network=host)",
                    strerror(error));
    *descriptor = got;
    return GSHMEM_OK;
}
