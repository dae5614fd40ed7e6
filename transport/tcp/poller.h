/* The poller: which streams have something to do.
 *
 * It is an epoll set, and a guess. Two streams are likely to have something: the one that brought
 * what arrived last and before that (`regular`), and the one on which the only awaited response is
 * due (`requested`). A round polls these directly, without asking epoll first, which saves a system
 * call; every 8th to 32nd round asks epoll for all streams.
 *
 * Invariant: `last`, `regular` and `requested` are NULL or a stream that is open. */
#ifndef GSHMEM_TRANSPORT_TCP_POLLER_H
#define GSHMEM_TRANSPORT_TCP_POLLER_H

#include <stddef.h>
#include <sys/epoll.h>

#include "transport/tcp/stream.h"

enum { POLLER_LIKELY_ROUNDS = 100 }; /* a stream is likely while something arrived within them */

struct poller {
    struct tcp *owner;
    int epoll_fd;
    uint64_t *watched;        /* a bit for each descriptor in the set, for a child of fork */
    struct stream *last;      /* the stream that brought something last, or NULL */
    struct stream *regular;   /* the same, if it brought what came before that, too */
    struct stream *requested; /* the stream on which the last request was sent, or NULL */
    int awaiting;             /* streams on which a response is due that somebody waits for */
    uint32_t round;           /* of progress, counted */
    uint32_t idle;            /* rounds since something arrived */
    uint32_t polled_all;      /* the round that polled all streams last */
    uint32_t poll_all_after;  /* so many rounds later all are polled again */
};

/* Makes the set. False: the system refused (errno). poller_close also ends a failed poller_open. */
bool poller_open(struct poller *p, struct tcp *owner);
void poller_close(struct poller *p);

/* Watches a stream for these events of epoll. False: the system refused (errno). */
bool poller_watch(struct poller *p, struct stream *s, uint32_t events);
/* Changes the events of a stream that is watched. */
bool poller_change(struct poller *p, struct stream *s, uint32_t events);
/* Whether `ready` is called when the socket takes more bytes. */
void poller_want_out(struct poller *p, struct stream *s, bool wanted);
/* Stops watching the stream and closes its descriptor. */
void poller_end(struct poller *p, struct stream *s);

/* The stream brought something to do. One that does so repeatedly is polled before the others. */
static inline void poller_note_arrival(struct poller *p, struct stream *s)
{
    p->regular = p->last == s ? s : NULL;
    p->last = s;
}

/* Calls `ready` of all streams that have something. Returns what epoll_wait returns. */
int poller_poll_all(struct poller *p);

/* Calls `ready` of the streams that are likely to have something. Returns whether that is enough
 * for this round. */
static inline bool poller_poll_likely(struct poller *p)
{
    struct stream *regular = p->idle < POLLER_LIKELY_ROUNDS ? p->regular : NULL;
    struct stream *requested =
        p->idle < POLLER_LIKELY_ROUNDS && p->awaiting == 1 ? p->requested : NULL;

    if (regular)
        regular->ready(p->owner, regular, EPOLLIN);
    if (requested && requested != regular)
        requested->ready(p->owner, requested, EPOLLIN);
    return (regular || requested) && p->round - p->polled_all < p->poll_all_after;
}

/* One round. Within it, the memory of a stream stays until `ready` of that stream frees it: an
 * event of it may be in the same batch. Returns a negative number if epoll failed (errno). */
static inline int poller_poll(struct poller *p)
{
    return poller_poll_likely(p) ? 0 : poller_poll_all(p);
}

/* In a child of fork: closes the child's copies of all watched descriptors. The epoll set is the
 * parent's too, and stays as it is. */
void poller_leave_parent(const struct poller *p);

#endif
