#define _GNU_SOURCE
#include "runtime/node/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"
#include "runtime/base/system.h"

/* A process that connects and sends nothing gets this much time, for which the others wait once. */
enum { STRANGER_SECONDS = 1 };

struct question {
    unsigned char token[16];
    int32_t index; /* negative: that PE's start-up has failed */
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
    struct sockaddr_storage name = {.ss_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t);
    const size_t header = offsetof(struct sockaddr_un, sun_path) + 1;

    memset(&r->address, 0, sizeof r->address);
    if (!system_random(r->address.token, sizeof r->address.token))
        return fail(GSHMEM_ERR_SYSTEM, "getrandom: %s", strerror(errno));
    r->fd = descriptor_keep(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (r->fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "a Unix socket for this node's PEs: %s", log_errno(errno));
    /* With an address of the family alone, the kernel chooses a name that is free. */
    if (system_bind(r->fd, &name, &length, 4096) != 0 || length <= header ||
        length - header > sizeof r->address.name) {
        int error = errno;
        rendezvous_close(r);
        return fail(GSHMEM_ERR_SYSTEM, "a Unix socket for this node's PEs: %s", strerror(error));
    }
    r->address.name_bytes = (uint8_t)(length - header);
    memcpy(r->address.name, (const char *)&name + header, r->address.name_bytes);
    return GSHMEM_OK;
}

void rendezvous_close(struct rendezvous *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1; /* start-up that fails closes it once more */
}

static bool same_token(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;

    for (int i = 0; i < 16; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* A system call that a signal handler has interrupted, with or without SA_RESTART, is made again
 * until `end`: programs with interval timers can start, too. */
#define UNINTERRUPTED(call, end)                                                                   \
    __extension__({                                                                                \
        ssize_t result_;                                                                           \
        do                                                                                         \
            result_ = (call);                                                                      \
        while (result_ < 0 && errno == EINTR && clock_ns() < (end));                               \
        result_;                                                                                   \
    })

static uint64_t seconds_from_now(int seconds)
{
    return clock_ns() + (uint64_t)seconds * 1000000000u;
}

/* Reads one request; returns its index, or 0 if it does not have the token. */
static int read_question(const struct rendezvous *r, int peer, int n)
{
    const uint64_t end = seconds_from_now(STRANGER_SECONDS);
    struct question q;

    if (!descriptor_peer_is_ours(peer) ||
        UNINTERRUPTED(system_recv(peer, &q, sizeof q, 0), end) != sizeof q ||
        !same_token(q.token, r->address.token) || q.index <= -n || q.index >= n)
        return 0;
    return q.index;
}

static bool rendezvous_send_letter(int peer, const void *letter, size_t bytes, int descriptor)
{
    union descriptor_control control = {.space = {0}};
    struct iovec data = {(void *)letter, bytes};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(sizeof descriptor)};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    return UNINTERRUPTED(system_sendmsg(peer, &message, MSG_NOSIGNAL),
                         seconds_from_now(STRANGER_SECONDS)) == (ssize_t)bytes;
}

static void limit_time(int fd, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};

    system_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    system_setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
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
                "start-up: after %d s these PEs of this node have not come for its memory:%s "
                "(GSHMEM_INIT_TIMEOUT changes how long to wait)",
                seconds, list);
}

/* Whether accept is worth another try after a failure. If the peer has gone, it is. A shortage of
 * this process's own resources is not, since nothing that it waits for releases descriptors; a
 * shortage of the machine's may pass. */
static bool may_accept_again(int error)
{
    if (error == ENFILE || error == ENOBUFS || error == ENOMEM)
        clock_sleep(10 * CLOCK_MS);
    return error != EMFILE;
}

gshmem_status_t rendezvous_serve(struct rendezvous *r, const int *pe, int n, int timeout_seconds,
                                 const void *letter, size_t letter_bytes, int descriptor)
{
    const uint64_t end = seconds_from_now(timeout_seconds);
    bool *served = calloc((size_t)n, sizeof *served);
    gshmem_status_t status = GSHMEM_OK;
    int missing = n - 1, refused = 0;

    if (!served)
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    while (missing > 0) {
        uint64_t now = clock_ns();
        struct pollfd ready = {.fd = r->fd, .events = POLLIN};

        if (now >= end) {
            status = refuse_missing(served, pe, n, timeout_seconds);
            break;
        }
        if (system_poll(&ready, 1, (int64_t)(end - now) + CLOCK_MS) < 1)
            continue;
        int peer = descriptor_keep(system_accept(r->fd, NULL, SOCK_CLOEXEC));
        if (peer < 0 && may_accept_again(errno))
            continue;
        if (peer < 0) {
            status =
                fail(GSHMEM_ERR_SYSTEM, "start-up: handing this node's memory to its other PEs: %s",
                     log_errno(errno));
            break;
        }
        limit_time(peer, STRANGER_SECONDS);
        int index = read_question(r, peer, n);
        if (index < 0) {
            status = fail(GSHMEM_ERR_PEER_DEAD,
                          "start-up: PE %d has failed in gshmem_init; a line of its own says why",
                          pe[-index]);
            close(peer);
            break;
        }
        if (index == 0) {
            if (refused++ == 0) /* one line is enough to start an investigation */
                log_warn("start-up: a process that is not of this job asked for its memory: "
                         "refused (said once)");
        } else if (rendezvous_send_letter(peer, letter, letter_bytes, descriptor) &&
                   !served[index]) {
            served[index] = true;
            missing--;
        }
        close(peer);
    }
    free(served);
    return status;
}

/* 0, or an errno; ECONNRESET: the leader has closed the connection without a response. */
static int ask_once(const struct rendezvous_address *address, const struct question *q, int seconds,
                    uint64_t end, void *letter, size_t letter_bytes, int *descriptor)
{
    union descriptor_control control;
    struct iovec data = {letter, letter_bytes};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};
    struct sockaddr_un name;
    socklen_t length = socket_address(address, &name);
    int error = 0, fd = descriptor_keep(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC));

    if (fd < 0)
        return errno;
    limit_time(fd, seconds);
    if (UNINTERRUPTED(system_connect(fd, (struct sockaddr *)&name, length), end) != 0) {
        error = errno;
    } else if (!descriptor_peer_is_ours(fd)) {
        error = EPERM; /* the leader is gone, and another process has its name now */
    } else if (UNINTERRUPTED(system_send(fd, q, sizeof *q, MSG_NOSIGNAL), end) != sizeof *q) {
        error = errno == EPIPE ? ECONNRESET : errno;
    } else {
        ssize_t bytes = UNINTERRUPTED(system_recvmsg(fd, &message, MSG_CMSG_CLOEXEC), end);
        error = bytes < 0                          ? errno
                : bytes == 0                       ? ECONNRESET
                : message.msg_flags & MSG_CTRUNC   ? EMFILE
                : bytes != (ssize_t)letter_bytes   ? EPROTO
                                                   : 0;
        int got = bytes < 0 ? -1 : descriptor_take(&message);
        if (got < 0 && !error)
            error = EPROTO;
        if (got >= 0 && error)
            close(got);
        *descriptor = got;
    }
    close(fd);
    return error;
}

gshmem_status_t rendezvous_ask(const struct rendezvous_address *address, int index,
                               int timeout_seconds, void *letter, size_t letter_bytes,
                               int *descriptor)
{
    const uint64_t end = seconds_from_now(timeout_seconds);
    struct question q = {.index = index};
    int error;

    if (address->name_bytes > sizeof address->name)
        return fail(GSHMEM_ERR_BOOTSTRAP, "start-up: the leader of this node published nonsense");
    memcpy(q.token, address->token, sizeof q.token);
    /* The leader waits only briefly for a PE that has connected: a PE that was stalled then
     * connects again. */
    do
        error = ask_once(address, &q, timeout_seconds, end, letter, letter_bytes, descriptor);
    while (error == ECONNRESET && clock_ns() < end);
    if (!error)
        return GSHMEM_OK;
    if (error == EMFILE || error == ENFILE)
        return fail(GSHMEM_ERR_SYSTEM, "start-up: a descriptor for this node's memory: %s",
                    log_errno(error));
    if (error == EAGAIN || error == EINTR)
        return fail(GSHMEM_ERR_TIMEOUT,
                    "start-up: this node's lowest PE has not handed its memory over within %d s "
                    "(GSHMEM_INIT_TIMEOUT changes how long to wait)",
                    timeout_seconds);
    return fail(GSHMEM_ERR_BOOTSTRAP,
                "start-up: no memory from this node's lowest PE: %s. It has failed, has another "
                "GSHMEM_PRETENDED_NODES, or does not share a network namespace and a user with "
                "this one (containers: --network=host)",
                strerror(error));
}

void rendezvous_tell_failure(const struct rendezvous_address *address, int index)
{
    const uint64_t end = seconds_from_now(STRANGER_SECONDS);
    struct question q = {.index = -index};
    struct sockaddr_un name;

    if (address->name_bytes > sizeof address->name)
        return;
    socklen_t length = socket_address(address, &name);
    int fd = descriptor_keep(system_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC));
    memcpy(q.token, address->token, sizeof q.token);
    if (fd < 0)
        return;
    limit_time(fd, STRANGER_SECONDS);
    /* A PE that is not notified waits for GSHMEM_INIT_TIMEOUT. */
    if (UNINTERRUPTED(system_connect(fd, (struct sockaddr *)&name, length), end) == 0 &&
        descriptor_peer_is_ours(fd))
        (void)UNINTERRUPTED(system_send(fd, &q, sizeof q, MSG_NOSIGNAL), end);
    close(fd);
}
