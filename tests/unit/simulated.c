/* The seam of runtime/base/system.h: this file stands for the system, of which bootstrap/stream.c and
 * runtime/base/mutex.c are compiled to be its guests (GSHMEM_SIMULATED). An hour takes no time here,
 * and a peer is a table of when which bytes arrive. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <time.h>

#include "../check.h"
#include "bootstrap/stream.h"
#include "runtime/base/mutex.h"
#include "runtime/base/system.h"

enum { SOCKET = 1000, SECOND_NS = 1000 * CLOCK_MS };

static struct {
    uint64_t now;
    uint64_t arrives;  /* when `bytes` are there to be read */
    const char *bytes; /* NULL: none ever come */
    char sent[64];
    size_t n_sent;
    int error; /* of a connection that is being made */
    int polls, waits, wakes;
    struct mutex *held; /* by another thread, which gives it back once this one waits */
} world;

/* ---- The system ---- */

uint64_t clock_ns(void)
{
    return world.now;
}

int system_socket(int domain, int type)
{
    CHECK_EQ(domain, AF_INET);
    CHECK(type & SOCK_NONBLOCK);
    return SOCKET;
}

int system_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    CHECK_EQ(fd, SOCKET);
    CHECK(to->sa_family == AF_INET && size > 0);
    errno = EINPROGRESS;
    return -1;
}

int system_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    CHECK(fd == SOCKET && level == SOL_SOCKET && name == SO_ERROR && *size == sizeof(int));
    memcpy(value, &world.error, sizeof world.error);
    return 0;
}

int system_poll(struct pollfd *fds, nfds_t n, int64_t ns)
{
    const uint64_t end = world.now + (uint64_t)ns;

    CHECK(n == 1 && fds->fd == SOCKET && ns >= 0);
    world.polls++;
    fds->revents = 0;
    if (fds->events == POLLOUT) {
        fds->revents = POLLOUT;
    } else if (world.bytes && world.arrives <= end) {
        world.now = world.now > world.arrives ? world.now : world.arrives;
        fds->revents = POLLIN;
    } else {
        world.now = end;
    }
    return fds->revents != 0;
}

ssize_t system_recv(int fd, void *to, size_t bytes, int flags)
{
    const size_t there = world.bytes ? strlen(world.bytes) : 0;
    const size_t n = bytes < there ? bytes : there;

    CHECK(fd == SOCKET && flags == MSG_DONTWAIT && world.now >= world.arrives);
    memcpy(to, world.bytes, n);
    world.bytes += n;
    return (ssize_t)n;
}

ssize_t system_send(int fd, const void *from, size_t bytes, int flags)
{
    CHECK(fd == SOCKET && (flags & MSG_NOSIGNAL) && world.n_sent < sizeof world.sent);
    memcpy(world.sent + world.n_sent++, from, 1); /* a byte at a time */
    return bytes > 0;
}

void system_futex(void *word, int op, uint32_t value, const struct timespec *most)
{
    CHECK(word == &world.held->state && !most);
    if (op == FUTEX_WAKE_PRIVATE) {
        world.wakes++;
        return;
    }
    CHECK_EQ(op, FUTEX_WAIT_PRIVATE);
    CHECK_EQ(value, MUTEX_WANTED);
    world.waits++;
    mutex_give(world.held);
}

/* ---- What its guests make of it ---- */

static void test_nothing_comes(void)
{
    char byte;

    memset(&world, 0, sizeof world);
    world.now = 7;
    CHECK_EQ(stream_read(SOCKET, &byte, 1, stream_deadline(3600)), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    CHECK(world.now >= 3600 * (uint64_t)SECOND_NS && world.now < 3601 * (uint64_t)SECOND_NS);
}

static void test_bytes_come(void)
{
    char text[5] = "";

    memset(&world, 0, sizeof world);
    world.arrives = 50 * (uint64_t)SECOND_NS;
    world.bytes = "late";
    CHECK_EQ(stream_read_all(SOCKET, text, 4, stream_deadline(60)), 4);
    CHECK_STR(text, "late");
    CHECK_EQ(world.now, 50 * (uint64_t)SECOND_NS);
    CHECK_EQ(stream_write_all(SOCKET, "bytes", 5, stream_deadline(1)), 0);
    CHECK_STR(world.sent, "bytes");
}

static void test_connect(void)
{
    const struct sockaddr to = {.sa_family = AF_INET};

    memset(&world, 0, sizeof world);
    CHECK_EQ(stream_connect(&to, sizeof to, stream_deadline(1)), SOCKET);
    world.error = ECONNREFUSED;
    CHECK_EQ(stream_connect(&to, sizeof to, stream_deadline(1)), -1);
    CHECK_EQ(errno, ECONNREFUSED);
}

static void test_mutex(void)
{
    struct mutex m = {MUTEX_FREE};

    memset(&world, 0, sizeof world);
    world.held = &m;
    mutex_take(&m);
    CHECK_EQ(world.waits, 0);
    mutex_take(&m); /* another thread's that has it gives it back */
    CHECK_EQ(world.waits, 1);
    CHECK_EQ(world.wakes, 1);
}

int main(void)
{
    const time_t began = time(NULL);

    test_nothing_comes();
    test_bytes_come();
    test_connect();
    test_mutex();
    CHECK(time(NULL) - began < 60);
    return 0;
}
