#define _GNU_SOURCE
#include "bootstrap/stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/system.h"

uint64_t stream_deadline(int seconds)
{
    return clock_ns() + (uint64_t)seconds * 1000000000u;
}

int stream_left_ms(uint64_t deadline)
{
    uint64_t now = clock_ns();
    uint64_t ms = deadline > now ? (deadline - now + 999999) / 1000000 : 0;

    return ms > 1000000 ? 1000000 : (int)ms;
}

/* Waits until the events are there. 0, or -1 with errno. */
static int stream_await(int fd, short events, uint64_t deadline)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int left = stream_left_ms(deadline);
        int n = system_poll(&p, 1, left * (int64_t)CLOCK_MS);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
        if (left == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/* What a connect that did not wait has come to. 0, or -1 with errno. */
static int stream_connected(int fd, uint64_t deadline)
{
    int error;
    socklen_t bytes = sizeof error;

    if (stream_await(fd, POLLOUT, deadline) != 0 ||
        system_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        return -1;
    errno = error;
    return error ? -1 : 0;
}

int stream_connect(const struct sockaddr *to, socklen_t bytes, uint64_t deadline)
{
    int fd =
        descriptor_keep(system_socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK));

    if (fd < 0)
        return -1;
    if (system_connect(fd, to, bytes) == 0 ||
        (errno == EINPROGRESS && stream_connected(fd, deadline) == 0))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The call would have waited, or was interrupted: worth another try. */
static int passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

ssize_t stream_read(int fd, void *buffer, size_t bytes, uint64_t deadline)
{
    for (;;) {
        if (stream_await(fd, POLLIN, deadline) != 0)
            return -1;
        ssize_t n = system_recv(fd, buffer, bytes, MSG_DONTWAIT);
        if (n >= 0 || !passing(errno))
            return n;
    }
}

ssize_t stream_read_all(int fd, void *buffer, size_t bytes, uint64_t deadline)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t n = stream_read(fd, (char *)buffer + done, bytes - done, deadline);
        if (n <= 0)
            return n;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int stream_write_all(int fd, const void *buffer, size_t bytes, uint64_t deadline)
{
    size_t done = 0;

    while (done < bytes) {
        if (stream_await(fd, POLLOUT, deadline) != 0)
            return -1;
        /* A closed peer is an error to report, not a signal that ends the program. */
        ssize_t n =
            system_send(fd, (const char *)buffer + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && !passing(errno))
            return -1;
        if (n > 0)
            done += (size_t)n;
    }
    return 0;
}
