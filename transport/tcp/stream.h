/* A stream: a socket, or a timer, that the poller watches.
 *
 * Streams, the poller, the send queue and the receive buffer move bytes and know nothing of what
 * the bytes mean. What happens on a stream goes up through `ready`. */
#ifndef GSHMEM_TRANSPORT_TCP_STREAM_H
#define GSHMEM_TRANSPORT_TCP_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct tcp; /* the transport, which is handed through to `ready` */

struct stream {
    /* The stream has one of these events. Returns false if it has ended and has been closed. */
    bool (*ready)(struct tcp *t, struct stream *s, uint32_t events);
    int fd;
    bool wants_out; /* the poller reports when the socket takes more bytes */
};

#endif
