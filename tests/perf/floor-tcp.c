/* What TCP itself takes between two processes, no library in between: the floor of the transport over
 * TCP. CSV, as gshmem-perf prints it: a round trip of 8 bytes where both ask the socket again and
 * again, the same where both sleep in recv, a stream of messages that the other end takes into one
 * buffer of that size and answers with a byte each 64 MiB, and messages that are each asked for with
 * a byte when the one before has come. Over the loopback; between hosts:
 *
 *     floor-tcp serve 10.88.0.1        on one
 *     floor-tcp 10.88.0.1              on the other
 *
 * With the name of a congestion control behind, on both, with that. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 18515, ROUNDS = 21, TRIPS = 2000, STREAM = 64 << 20, BUFFER = 4 << 20 };

static char *buffer;
static const char *control; /* NULL: the system's */

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void must(int fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "floor-tcp: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void send_all(int fd, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(fd, buffer + at, bytes - at, MSG_NOSIGNAL);
        must(n > 0, "send");
        at += (size_t)n;
    }
}

static void receive_all(int fd, size_t bytes, int flags)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = recv(fd, buffer + at, bytes - at, flags);
        if (n < 0 && errno == EAGAIN)
            continue;
        must(n > 0, "recv");
        at += (size_t)n;
    }
}

/* Both sides go through the same list, so they agree without a word. */
static const struct part {
    const char *name;
    size_t bytes;
    enum { PINGPONG, ONE_WAY, REQUESTS } kind;
    int flags; /* of recv */
} parts[] = {
    {"tcp_pingpong_spin", 8, PINGPONG, MSG_DONTWAIT},
    {"tcp_pingpong_sleep", 8, PINGPONG, 0},
    {"tcp_stream", 65536, ONE_WAY, 0},
    {"tcp_stream", 1 << 20, ONE_WAY, 0},
    {"tcp_stream", 4 << 20, ONE_WAY, 0},
    {"tcp_request", 65536, REQUESTS, 0},
    {"tcp_request", 1 << 20, REQUESTS, 0},
    {"tcp_request", 4 << 20, REQUESTS, 0},
};

static void answer_round(int fd, const struct part *p)
{
    if (p->kind == REQUESTS) {
        for (size_t at = 0; at < STREAM; at += p->bytes) {
            receive_all(fd, 1, 0);
            send_all(fd, p->bytes);
        }
        return;
    }
    if (p->kind == ONE_WAY) {
        for (size_t at = 0; at < STREAM; at += p->bytes)
            receive_all(fd, p->bytes, p->flags);
        send_all(fd, 1);
        return;
    }
    for (int i = 0; i < TRIPS; i++) {
        receive_all(fd, p->bytes, p->flags);
        send_all(fd, p->bytes);
    }
}

/* ns a round trip, or GB/s */
static double ask_round(int fd, const struct part *p)
{
    double start = now_ns();

    if (p->kind == REQUESTS) {
        for (size_t at = 0; at < STREAM; at += p->bytes) {
            send_all(fd, 1);
            receive_all(fd, p->bytes, p->flags);
        }
        return STREAM / (now_ns() - start);
    }
    if (p->kind == ONE_WAY) {
        for (size_t at = 0; at < STREAM; at += p->bytes)
            send_all(fd, p->bytes);
        receive_all(fd, 1, 0);
        return STREAM / (now_ns() - start);
    }
    for (int i = 0; i < TRIPS; i++) {
        send_all(fd, p->bytes);
        receive_all(fd, p->bytes, p->flags);
    }
    return (now_ns() - start) / TRIPS;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void answer(int fd)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (int round = 0; round < ROUNDS; round++)
            answer_round(fd, &parts[i]);
}

static void ask(int fd)
{
    double value[ROUNDS];

    printf("benchmark,size,unit,median,min\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct part *p = &parts[i];
        for (int round = 0; round < ROUNDS; round++)
            value[round] = ask_round(fd, p);
        qsort(value, ROUNDS, sizeof value[0], ascending);
        printf("%s,%zu,%s,%.4g,%.4g\n", p->name, p->bytes, p->kind == PINGPONG ? "ns" : "GB/s",
               value[ROUNDS / 2], value[0]);
    }
}

static int open_socket(const char *where, int serves, struct sockaddr_in *name)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
    must(fd >= 0, "socket");
    must(inet_pton(AF_INET, where, &name->sin_addr) == 1, where);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (control)
        must(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control)) == 0,
             control);
    if (serves) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        must(bind(fd, (struct sockaddr *)name, sizeof *name) == 0, "bind");
        must(listen(fd, 1) == 0, "listen");
    }
    return fd;
}

static void serve(int listener)
{
    const int on = 1;
    int fd = accept(listener, NULL, NULL);

    must(fd >= 0, "accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    answer(fd);
    close(fd);
}

static void talk(const char *where)
{
    struct sockaddr_in name;
    int fd = open_socket(where, 0, &name);

    must(connect(fd, (struct sockaddr *)&name, sizeof name) == 0, "connect");
    ask(fd);
    close(fd);
}

int main(int argc, char **argv)
{
    struct sockaddr_in name;

    must((buffer = malloc(BUFFER)) != NULL, "malloc");
    memset(buffer, 1, BUFFER);
    int serves = argc > 1 && strcmp(argv[1], "serve") == 0;
    control = argc > 2 + serves ? argv[2 + serves] : NULL;
    if (serves && argc > 2) {
        serve(open_socket(argv[2], 1, &name));
    } else if (argc > 1) {
        talk(argv[1]);
    } else {
        int listener = open_socket("127.0.0.1", 1, &name);
        pid_t child = fork();
        must(child >= 0, "fork");
        if (child == 0) {
            serve(listener);
            _exit(0);
        }
        talk("127.0.0.1");
        waitpid(child, NULL, 0);
        close(listener);
    }
    free(buffer);
    return 0;
}
