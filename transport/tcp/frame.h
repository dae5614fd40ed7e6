/* The wire: what travels on a stream. Messages have a fixed number of bytes, little-endian.
 *
 * Every ordered pair of PEs has a stream of its own, which the initiator opens:
 *
 *     initiator                                       target
 *     hello, its proof ─────────────────────────────►           (greeting.h)
 *                      ◄───────────────── challenge, its proof
 *     proof ────────────────────────────────────────►
 *                      ◄───────────────── response DONE of number 0: the stream is active
 *     request (a put's data follows it) ────────────►
 *                      ◄───────────────── response (a get's data follows it)
 *                      ◄───────────────── unordered put, which looks like a put
 *     acknowledgement of unordered puts ────────────►
 *
 * Requests are numbered from 1 by their place, and are carried out in order. A response to number n
 * says that all up to n have been carried out, so that a put needs no response of its own. Small
 * requests may travel as the records of one frame, each with a number of its own, and what they
 * fetch comes back behind one response.
 * Unordered puts are numbered in the same way, apart from requests. Where the initiator traces
 * (GSHMEM_TRACE), a frame with the operation's id goes before each request.
 *
 * Encoders and decoders stand side by side; a decoder reports what no PE of this version sends. */
#ifndef GSHMEM_TRANSPORT_TCP_FRAME_H
#define GSHMEM_TRANSPORT_TCP_FRAME_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "transport/batch.h"
#include "transport/transport.h"

enum {
    FRAME_VERSION = 10,
    HELLO_BYTES = 64, /* and a proof */
    NONCE_BYTES = 32,
    PROOF_BYTES = 32,
    CHALLENGE_BYTES = NONCE_BYTES + PROOF_BYTES, /* the answer to a hello */
    REQUEST_BYTES = 40,
    RESPONSE_BYTES = 24,
};

static const char frame_magic[8] = {'G', 'S', 'H', 'M', 'E', 'M', 't', 'c'};

static inline void frame_put32(unsigned char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof value);
}

static inline uint32_t frame_get32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static inline void frame_put64(unsigned char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof value);
}

static inline uint64_t frame_get64(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

/* ---- Hello: magic 8, version 4, from 4, to 4, n_pes 4, nonce 32, zero 8 ---- */

struct hello {
    uint32_t version;
    uint32_t from;
    uint32_t to;
    uint32_t n_pes;
    unsigned char nonce[NONCE_BYTES];
};

static inline void hello_encode(unsigned char out[HELLO_BYTES], const struct hello *h)
{
    memcpy(out, frame_magic, 8);
    frame_put32(out + 8, h->version);
    frame_put32(out + 12, h->from);
    frame_put32(out + 16, h->to);
    frame_put32(out + 20, h->n_pes);
    memcpy(out + 24, h->nonce, NONCE_BYTES);
    memset(out + 56, 0, 8);
}

static inline bool hello_decode(const unsigned char in[HELLO_BYTES], struct hello *h)
{
    h->version = frame_get32(in + 8);
    h->from = frame_get32(in + 12);
    h->to = frame_get32(in + 16);
    h->n_pes = frame_get32(in + 20);
    memcpy(h->nonce, in + 24, NONCE_BYTES);
    return memcmp(in, frame_magic, 8) == 0 && frame_get64(in + 56) == 0;
}

/* ---- Request: eight bytes of small fields, offset 8, bytes 8, two operands 8 each ---- */

enum frame_kind {
    FRAME_PUT = 1,
    FRAME_GET,
    FRAME_ATOMIC,
    FRAME_GOODBYE, /* the last: nothing follows, and the end of the stream is no accident */
    FRAME_FAILED,  /* without number and response: the PE `offset` has failed */
    FRAME_MESSAGE, /* likewise: `bytes` bytes follow, for the transport that uses this one */
    FRAME_ACK,     /* likewise: the first `offset` unordered puts have been carried out */
    FRAME_TRACE,   /* likewise: the next request is of the operation with the id `offset` */
    FRAME_BATCH,   /* `bytes` bytes of records follow, of elements of the object at `offset` */

    FRAME_BATCH_BYTES_AT = 16, /* where a batch's frame has `bytes`, which the number of elements
                                  follows */
};

/* What the records of a batch are. */
enum frame_records {
    RECORDS_OF_ONE,  /* one request */
    RECORDS_EACH,    /* each is a request: a put, or an update whose old value nobody wants */
    RECORDS_FETCH,   /* each is a request: a get, or an update whose old value comes back */
    FETCHED_VALUE_BYTES = 8, /* of an old value, whatever the type */
};

struct request_frame {
    uint8_t kind;
    uint8_t segment;
    uint8_t amo; /* of an atomic */
    uint8_t type;
    uint8_t signal_op; /* of a put; 0: none. Of a batch: an enum frame_records */
    uint8_t signal_segment; /* of a batch: what it does to each element */
    uint8_t more;    /* of a put without a signal: the next request is the rest of it */
    uint8_t unasked; /* of a put: nobody waits for its response */
    uint64_t offset;
    uint64_t bytes; /* of the data: behind this frame (put), or requested (get) */
    uint64_t a;     /* operand, the signal's offset, or the number of elements */
    uint64_t b;     /* compare, the signal's value, or the bytes of an element */
    uint64_t trace; /* not on the wire: the operation's id, or 0 */
};

static inline void request_encode(unsigned char out[REQUEST_BYTES], const struct request_frame *f)
{
    const unsigned char small[8] = {f->kind,      f->segment,        f->amo,  f->type,
                                    f->signal_op, f->signal_segment, f->more, f->unasked};

    memcpy(out, small, 8);
    frame_put64(out + 8, f->offset);
    frame_put64(out + 16, f->bytes);
    frame_put64(out + 24, f->a);
    frame_put64(out + 32, f->b);
}

static inline bool request_decode(const unsigned char in[REQUEST_BYTES], struct request_frame *f)
{
    *f = (struct request_frame){
        .kind = in[0],
        .segment = in[1],
        .amo = in[2],
        .type = in[3],
        .signal_op = in[4],
        .signal_segment = in[5],
        .more = in[6],
        .unasked = in[7],
        .offset = frame_get64(in + 8),
        .bytes = frame_get64(in + 16),
        .a = frame_get64(in + 24),
        .b = frame_get64(in + 32),
    };
    bool may_have_more = f->kind == FRAME_PUT && f->signal_op == 0;
    return f->kind >= FRAME_PUT && f->kind <= FRAME_BATCH && f->more <= may_have_more &&
           f->unasked <= (f->kind == FRAME_PUT);
}

/* The bytes of a record: a number, and for a put its value, for an update its operands. */
static inline size_t frame_record_bytes(const struct request_frame *f)
{
    const bool compares = f->signal_op == RECORDS_FETCH && f->signal_segment == TRANSPORT_ATOMIC &&
                          f->amo == GSHMEM_AMO_COMPARE_SWAP;

    return batch_record_bytes(f->signal_segment, f->b) + (compares ? (size_t)f->b : 0);
}

/* Whether a batch has elements of a size and in a number that there may be, records of a kind that
 * there is for what it does, and their bytes as payload. */
static inline bool frame_batch_is_sound(const struct request_frame *f)
{
    const uint64_t plain = f->a * batch_record_bytes(f->signal_segment, f->b);

    return batch_is_sound(f->signal_segment, f->a, f->b, plain) &&
           f->bytes == f->a * frame_record_bytes(f) &&
           (f->signal_op == RECORDS_OF_ONE ||
            (f->signal_op == RECORDS_EACH && f->signal_segment != TRANSPORT_GET) ||
            (f->signal_op == RECORDS_FETCH && f->signal_segment != TRANSPORT_PUT));
}

/* Of a put, with its signal if it has one. */
static inline struct request_frame request_of_put(const struct transport_request *r)
{
    return (struct request_frame){
        .kind = FRAME_PUT,
        .segment = (uint8_t)r->segment,
        .signal_op = (uint8_t)r->signal_op,
        .signal_segment = (uint8_t)r->signal_segment,
        .unasked = r->flags & TRANSPORT_UNASKED ? 1 : 0,
        .offset = r->offset,
        .bytes = r->bytes,
        .a = r->signal_offset,
        .b = r->signal_value,
    };
}

/* ---- Response: kind 1, zero 7, number 8, value 8 ---- */

/* All requests before `number` are done; and of that one: */
enum response_kind {
    RESPONSE_DONE = 16, /* it is done, too. Kinds below 16 are those of requests */
    RESPONSE_DATA,      /* `value` bytes of its data follow; with the last of them it is done */
    RESPONSE_VALUE,     /* it is done, and `value` is the old value of this atomic */
    RESPONSE_FAILED,    /* it has failed: `value` is the status */
    RESPONSE_GOODBYE,   /* the last response: the target leaves in good order */
    RESPONSE_REFUSED,   /* the last response: the target has given the initiator up */
    RESPONSE_FETCHED,   /* `value` bytes follow: the elements or old values of this request and of
                           those behind it, all of RECORDS_FETCH */
};

struct response_frame {
    uint8_t kind;
    uint64_t number;
    uint64_t value;
};

static inline void response_encode(unsigned char out[RESPONSE_BYTES],
                                   const struct response_frame *f)
{
    memset(out, 0, 8);
    out[0] = f->kind;
    frame_put64(out + 8, f->number);
    frame_put64(out + 16, f->value);
}

static inline bool response_decode(const unsigned char in[RESPONSE_BYTES], struct response_frame *f)
{
    *f = (struct response_frame){in[0], frame_get64(in + 8), frame_get64(in + 16)};
    for (int i = 1; i < 8; i++) {
        if (in[i])
            return false;
    }
    return f->kind >= RESPONSE_DONE && f->kind <= RESPONSE_FETCHED;
}

#endif
