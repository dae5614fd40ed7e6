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

struct outbound; /* requests of this PE to one other: outbound.c */
struct inbound;  /* requests of one other PE to this one: inbound.c */

struct tcp {
    struct transport base;
    struct transport_config config;
    int epoll_fd;
    uint64_t *watched;        /* a bit for each descriptor in that set, for children of fork */
    struct stream listener[ADDRESS_MOST]; /* one for each address */
    int listeners;
    bool on_loopback;         /* these are of the loopback alone */
    struct outbound **to;     /* [PE]: NULL until it is first talked to */
    struct outbound *open;    /* list of those */
    struct inbound *served;   /* list of the streams that others opened */
    int *lost;                /* the PEs whose loss is to be told, in the order in which it came, */
    int losses;               /* and how many they are */
    struct inbound **from;    /* [PE]: the stream that it has opened, or NULL */
    bool *met;                /* [PE]: it has opened its stream; whoever says so again is another */
    bool held_back;           /* some outbound has more to send than it was asked to */
    int awaited;              /* outbounds with answers due that somebody waits for */
    struct stream *asked;     /* the outbound that was sent the last request, or NULL */
    struct stream *last;      /* the stream that brought the last requests, or words; or NULL */
    struct stream *regular;   /* the same, if it brought those before them too */
    struct inbound *owed;     /* list of those whose answer waits for a quiet round */
    struct inbound *unasked;  /* list of those whose answers nobody waits for */
    bool unsaid;              /* some outbound has brought words, and its PE is not told that they came */
    uint32_t unasked_since;   /* the round from which on one of these two was to be said */
    uint64_t owed_since;      /* ns, */
    uint32_t owed_round;      /* and the round */
    uint32_t prompt;          /* so many answers must not wait */
    uint32_t round;           /* of progress, counted */
    uint32_t looked;          /* the round that looked at all streams last, */
    uint32_t look_after;      /* and how many later the next will */
    uint32_t idle;            /* rounds since something came */
    struct staging staging;   /* for memory of the device's */
    struct outbound *staging_out; /* list of those with something in it, or that wait for some of it */
    struct inbound *staging_in;
    int updates; /* of memory of the device's, for others, which it is at */
    int events;               /* of this progress */
    int strangers;            /* streams in `served` that have not greeted, */
    int silent;               /* and those of them that have not said a right hello */
    bool unkeyed;             /* the hellos of some wait for what the starter says */
    bool doomed;              /* some are to be dropped */
    bool *gone;               /* [PE]: it is lost to the job, and not listened to; */
    bool cut;                 /* some of them may have streams yet */
    bool knocked;             /* somebody waits to be accepted */
    bool paused;              /* no more are accepted for the moment */
    uint64_t begun;           /* ns, when this PE was ready for others */
    struct stream again;      /* a timer for openings that wait, */
    uint64_t again_at;        /* ns; 0: it is not set */
    bool again_due;
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
void tcp_note_visit(struct tcp *t, struct stream *s);
/* Why a connection ended, for people: the peer owes an answer and is silent; or by that error, 0: the
 * peer closed it. */
void tcp_explain_silence(const struct tcp *t, char *why, size_t size);
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

/* ---- outbound.c ---- */

gshmem_status_t outbound_post(struct tcp *t, const struct transport_request *request);
gshmem_status_t outbound_say(struct tcp *t, int pe, const void *note, size_t bytes);
void outbound_send_held(struct tcp *t);
void outbound_tell(struct tcp *t, int lost);
bool outbound_busy(const struct tcp *t);
void outbound_say_heard(struct tcp *t); /* to all whose words have come */
/* Goes on with what is staged, or waits for a buffer; whether anything could. */
bool outbound_advance(struct tcp *t);
/* At each tick: gives up those that owe an answer and have been silent for long. Whether any owes. */
bool outbound_watch(struct tcp *t);
void outbound_cut_off(struct tcp *t, int pe); /* likewise */
bool outbound_is_greeted(const struct tcp *t, int pe);
bool outbound_is_refused(const struct tcp *t, int pe); /* by that PE, which has given this one up */
void outbound_goodbye(struct tcp *t, int milliseconds); /* says it to all that are open, and sends */
void outbound_close_all(struct tcp *t);

/* ---- opening.c ---- */

bool opening_prepare(struct tcp *t);
void opening_try_again(struct tcp *t); /* those that are to be by now */

/* ---- inbound.c ---- */

void inbound_accept(struct tcp *t, int fd);
void inbound_send_owed(struct tcp *t);
/* Whether such an answer has waited for long, though other requests come in every round. */
bool inbound_owes_long(const struct tcp *t);
void inbound_send_unasked(struct tcp *t);
bool inbound_advance(struct tcp *t);
/* As outbound_watch, of the PEs that owe an answer to words. */
bool inbound_watch(struct tcp *t);
void inbound_make_room(struct tcp *t);   /* for one more stranger */
void inbound_drop_silent(struct tcp *t); /* at each tick: the strangers that have been given time enough */
void inbound_drop_doomed(struct tcp *t);
void inbound_try_keys(struct tcp *t);    /* of hellos that wait for them */
void inbound_spare_probes(struct tcp *t, int pe); /* another stream to it is probed */
void inbound_cut_off(struct tcp *t, int pe); /* says that it is lost to the job, and ends its stream */
bool inbound_busy(const struct tcp *t);
void inbound_close_all(struct tcp *t);

/* ---- words.c ---- */

/* The stream on which that request can go as a word, or NULL. */
struct inbound *words_way(const struct tcp *t, const struct transport_request *request);
gshmem_status_t words_post(struct tcp *t, struct inbound *i, const struct transport_request *request);
/* Those up to `number` are over. */
void words_end(struct tcp *t, struct inbound *i, uint64_t number, gshmem_status_t status);
/* One comes. False: it is against the rules. */
bool words_begin(struct tcp *t, struct outbound *o, const struct request_frame *f);
/* Its data has come. */
void words_take(struct tcp *t, struct outbound *o);
/* Tells, with what is sent next, how many have been heard. */
void words_say_heard(struct tcp *t, struct outbound *o);

#endif
