/* The TCP transport's own parts, and what they know of each other. */
#ifndef GSHMEM_TRANSPORT_TCP_TCP_H
#define GSHMEM_TRANSPORT_TCP_TCP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "transport/staging.h"
#include "transport/tcp/address.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/queue.h"
#include "transport/transport.h"

struct tcp;

/* What an epoll event points at. False: the stream is over and has been closed. */
struct stream {
    bool (*ready)(struct tcp *t, struct stream *s, uint32_t events);
    int fd;
    bool wants_out; /* epoll watches for room to send */
};

struct initiator; /* requests of this PE to one other: initiator.c */
struct target;  /* requests of one other PE to this one: target.c */

struct tcp {
    struct transport base;
    struct transport_config config;
    int epoll_fd;
    uint64_t *watched;        /* a bit for each descriptor in that set, for children of fork */
    struct stream listener[ADDRESS_MOST]; /* one for each address */
    int listeners;
    bool on_loopback;         /* these are of the loopback alone */
    struct initiator **to;     /* [PE]: NULL until it is first talked to */
    struct initiator *open;    /* list of those */
    struct target *served;   /* list of the streams that others opened */
    int *failed;                /* the PEs whose loss is to be told, in the order in which it came, */
    int failures;               /* and how many they are */
    struct target **from;    /* [PE]: the stream that it has opened, or NULL */
    bool *admitted;                /* [PE]: it has opened its stream; whoever says so again is another */
    bool held_back;           /* some initiator has more to send than it was asked to */
    int awaited;              /* outbounds with answers due that somebody waits for */
    struct stream *requested;     /* the initiator that was sent the last request, or NULL */
    struct stream *last;      /* the stream that brought the last requests, or words; or NULL */
    struct stream *regular;   /* the same, if it brought those before them too */
    struct target *delayed;     /* list of those whose answer waits for a quiet round */
    struct target *unawaited;  /* list of those whose answers nobody waits for */
    bool unacknowledged;              /* some initiator has brought words, and its PE is not told that they came */
    uint32_t unawaited_since;   /* the round from which on one of these two was to be said */
    uint64_t delayed_since;      /* ns, */
    uint32_t delayed_round;      /* and the round */
    uint32_t prompt;          /* so many answers must not wait */
    uint32_t round;           /* of progress, counted */
    uint32_t polled_all;          /* the round that looked at all streams last, */
    uint32_t poll_all_after;      /* and how many later the next will */
    uint32_t idle;            /* rounds since something came */
    struct staging staging;   /* for memory of the device's */
    struct initiator *staging_out; /* list of those with something in it, or that wait for some of it */
    struct target *staging_in;
    int updates; /* of memory of the device's, for others, which it is at */
    int events;               /* of this progress */
    int strangers;            /* streams in `served` that have not greeted, */
    int without_hello;               /* and those of them that have not said a right hello */
    bool await_key;             /* the hellos of some wait for what the starter says */
    bool closing;              /* some are to be dropped */
    bool *given_up;               /* [PE]: it is lost to the job, and not listened to; */
    bool giving_up;                 /* some of them may have streams yet */
    bool connection_waits;             /* somebody waits to be accepted */
    bool accept_paused;              /* no more are accepted for the moment */
    uint64_t began;           /* ns, when this PE was ready for others */
    struct stream retry;      /* a timer for openings that wait, */
    uint64_t retry_at;        /* ns; 0: it is not set */
    bool retry_due;
    struct stream timer;      /* ticks while answers are due, or strangers are at the door */
    bool ticking;
    bool ticked;
    uint64_t refusals;        /* of strangers; the first has been told */
    char congestion[17];      /* the system's for long ways, where ours begin with another; "" */
    int peer_seconds;         /* how long a silent peer is believed to live */
    int tick_ms;              /* a part of it */
};

/* ---- tcp.c ---- */

bool tcp_watch(struct tcp *t, struct stream *s, uint32_t events);   /* adds it to epoll */
void tcp_end_stream(struct tcp *t, struct stream *s); /* takes it out of epoll, and closes it */
void tcp_want_out(struct tcp *t, struct stream *s, bool wanted);
void tcp_tune(struct tcp *t, int fd);                               /* options of a new socket */
void tcp_probe(int fd, bool wanted); /* whether the system asks the other host if it is there; at first it does */
void tcp_start_ticking(struct tcp *t);
/* That stream has brought something to do. */
void tcp_note_arrival(struct tcp *t, struct stream *s);
/* Why a connection ended, for people: the peer initiator_awaits an answer and is silent; or by that error, 0: the
 * peer closed it. */
void tcp_explain_timeout(const struct tcp *t, char *why, size_t size);
void tcp_explain_end(const struct tcp *t, int error, char *why, size_t size);

/* Takes what has arrived: up to `bytes` bytes to where they belong, those behind them to a buffer with
 * that much room. As recv. */
ssize_t tcp_receive(int fd, void *place, size_t bytes, void *buffer, size_t room);

/* Data of that many bytes is worth a call of its own: behind its frame nothing else is read into the
 * buffer, from where it would have to be copied. */
enum { TCP_LARGE = 128 * 1024 };

/* ---- congestion.c ---- */

bool congestion_begin(struct tcp *t, int fd);      /* of a new socket; false: not as chosen */
void congestion_suit(const struct tcp *t, int fd); /* of a stream, once it is made */

/* ---- initiator.c ---- */

gshmem_status_t initiator_post(struct tcp *t, const struct transport_request *request);
gshmem_status_t initiator_send_message(struct tcp *t, int pe, const void *note, size_t bytes);
void initiator_send_held(struct tcp *t);
void initiator_notify_failure(struct tcp *t, int lost);
bool initiator_busy(const struct tcp *t);
void initiator_acknowledge(struct tcp *t); /* to all whose words have come */
/* Goes on with what is staged, or waits for a buffer; whether anything could. */
bool initiator_advance(struct tcp *t);
/* At each tick: gives up those that owe an answer and have been silent for long. Whether any initiator_awaits. */
bool initiator_tick(struct tcp *t);
void initiator_cut_off(struct tcp *t, int pe); /* likewise */
bool initiator_is_active(const struct tcp *t, int pe);
bool initiator_is_refused(const struct tcp *t, int pe); /* by that PE, which has given this one up */
void initiator_say_goodbye(struct tcp *t, int milliseconds); /* says it to all that are open, and sends */
void initiator_close_all(struct tcp *t);

/* ---- initiator_connect.c ---- */

bool connect_prepare(struct tcp *t);
void connect_retry(struct tcp *t); /* those that are to be by now */

/* ---- target.c ---- */

void target_accept(struct tcp *t, int fd);
void target_send_delayed(struct tcp *t);
/* Whether such an answer has waited for long, though other requests come in every round. */
bool target_delays_long(const struct tcp *t);
void target_send_unawaited(struct tcp *t);
bool target_advance(struct tcp *t);
/* As initiator_tick, of the PEs that owe an answer to words. */
bool target_tick(struct tcp *t);
void target_make_room(struct tcp *t);   /* for one more stranger */
void target_drop_silent(struct tcp *t); /* at each tick: the strangers that have been given time enough */
void target_drop_closing(struct tcp *t);
void target_try_keys(struct tcp *t);    /* of hellos that wait for them */
void target_spare_probes(struct tcp *t, int pe); /* another stream to it is probed */
void target_cut_off(struct tcp *t, int pe); /* says that it is lost to the job, and ends its stream */
bool target_busy(const struct tcp *t);
void target_close_all(struct tcp *t);

/* ---- unordered.c ---- */

/* The stream on which that request can go as a word, or NULL. */
struct target *unordered_stream(const struct tcp *t, const struct transport_request *request);
gshmem_status_t unordered_post(struct tcp *t, struct target *from, const struct transport_request *request);
/* Those up to `number` are over. */
void unordered_complete(struct tcp *t, struct target *from, uint64_t number, gshmem_status_t status);
/* One comes. False: it is against the rules. */
bool unordered_begin(struct tcp *t, struct initiator *to, const struct request_frame *f);
/* Its data has come. */
void unordered_apply(struct tcp *t, struct initiator *to);
/* Tells, with what is sent next, how many have been heard. */
void unordered_acknowledge(struct tcp *t, struct initiator *to);

#endif
