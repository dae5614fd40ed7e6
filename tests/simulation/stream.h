/* A connection: two sides, and the bytes that are under way to each. It lives until both have
 * closed it and no event names it. */
#ifndef TEST_SIMULATION_STREAM_H
#define TEST_SIMULATION_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
    struct piece *next;
    uint64_t at; /* when it arrives */
    size_t bytes, read;
    bool end, reset; /* instead of bytes */
    uint32_t step;   /* that sent it (explore.h) */
    char data[];
};

struct side {
    struct pe *pe;
    struct socket *socket;       /* NULL: closed, or not accepted yet */
    struct piece *first, *last;  /* on the way to it, or waiting for it */
    struct piece *under_way;     /* the first that has not arrived */
    size_t arrived;              /* bytes that it can read */
    size_t used;                 /* bytes that count against what the other side may send */
    size_t freed;                /* of these, what it has read and the other side will hear of */
    uint64_t last_at;            /* when the last piece arrives */
    uint64_t sent, delivered, heard_of; /* bytes to it; arrived; and the other side knows so */
    bool ended, closed;
    int error;
    unsigned user_timeout_ms, idle_s, every_s, probes; /* options of this side's socket */
    bool probed;
    int passed; /* a descriptor on its way to it + 1, of a Unix socket */
};

struct stream {
    struct side side[2]; /* 0: who has connected */
    int held;            /* by sockets and events */
    uint64_t number;     /* for the log */
    bool established, local; /* local: a Unix socket */
    struct stream *next, *before;
};

struct socket {
    struct object *object;
    int family;
    bool listens;
    uint16_t port;
    int backlog;
    struct stream *stream; /* NULL: a listener, or not connected */
    int which;             /* its side */
    bool connecting;
    struct stream *queue[64]; /* of a listener: not accepted yet */
    int queued;
    uint64_t receive_limit_ns; /* SO_RCVTIMEO */
    struct side options;       /* set before it has a stream */
};

/* The network's side, for sockets.c. */
struct stream *stream_new(struct pe *from, struct pe *to);
void stream_hold(struct stream *s);
void stream_release(struct stream *s);
/* For explore.c: whether an event is an arrival, at which side; NULL: it is not. */
struct stream *stream_of_event(void (*fire)(void *, uint64_t), void *object, uint64_t number,
                               int *side);
/* Takes some of the bytes: how many; 0: the other side has no room. */
size_t stream_send(struct stream *s, int from, const void *data, size_t bytes);
size_t stream_read(struct stream *s, int to, void *data, size_t bytes, bool peek);
/* A descriptor that goes with what was sent; -1: none has come. */
void stream_pass(struct stream *s, int from, int fd);
int stream_passed(struct stream *s, int to);
void stream_shut(struct stream *s, int from);
void stream_fail(struct stream *s, int side, int error);
/* The first packet of a connection: asks `to` at that port. */
void stream_connect(struct stream *s, uint16_t port);
/* The same on this machine, at once: 0 or an errno. */
int stream_connect_here(struct stream *s, uint16_t port);

/* The listener of a PE's machine at that port; NULL: none. */
struct socket *socket_find_listener(struct pe *pe, uint16_t port);

#endif
