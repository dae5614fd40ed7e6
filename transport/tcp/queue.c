#define _GNU_SOURCE
#include "transport/tcp/queue.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/system.h"

enum { VECTORS = 64, SENDING = MSG_NOSIGNAL | MSG_DONTWAIT };

static struct piece *last_piece(struct queue *q)
{
    return &q->piece[(q->end - 1) % QUEUE_PIECES];
}

void queue_add_copy(struct queue *q, const void *data, size_t bytes)
{
    size_t at = q->ring_end % QUEUE_RING;
    size_t before_wrap = QUEUE_RING - at < bytes ? QUEUE_RING - at : bytes;

    if (bytes == 0)
        return; /* an empty piece would never be sent */
    memcpy(q->ring + at, data, before_wrap);
    memcpy(q->ring, (const char *)data + before_wrap, bytes - before_wrap);
    if (queue_empty(q) || last_piece(q)->data)
        q->piece[q->end++ % QUEUE_PIECES] = (struct piece){.data = NULL};
    last_piece(q)->bytes += bytes;
    q->ring_end += bytes;
    q->bytes += bytes;
}

void queue_change_copy(struct queue *q, size_t position, const void *data, size_t bytes)
{
    size_t at = position % QUEUE_RING;
    size_t before_wrap = QUEUE_RING - at < bytes ? QUEUE_RING - at : bytes;

    memcpy(q->ring + at, data, before_wrap);
    memcpy(q->ring, (const char *)data + before_wrap, bytes - before_wrap);
}

void queue_add_reference(struct queue *q, const void *data, size_t bytes, queue_sent *sent,
                         void *tag)
{
    if (bytes == 0)
        return;
    q->piece[q->end++ % QUEUE_PIECES] = (struct piece){data, bytes, sent, tag};
    q->bytes += bytes;
}

bool queue_refers_to(const struct queue *q, const void *at, size_t bytes)
{
    for (uint32_t i = q->first; i != q->end; i++) {
        const struct piece *p = &q->piece[i % QUEUE_PIECES];
        if (bytes && p->data && p->data < (const char *)at + bytes &&
            (const char *)at < p->data + p->bytes)
            return true;
    }
    return false;
}

/* The first bytes of the queue, at most so many, as vectors. A piece that wraps takes two. */
static int queue_vectors(const struct queue *q, struct iovec *vector, size_t most)
{
    size_t ring = q->ring_first;
    int n = 0;

    for (uint32_t i = q->first; i != q->end && n + 2 <= VECTORS && most; i++) {
        const struct piece *p = &q->piece[i % QUEUE_PIECES];
        const size_t bytes = p->bytes < most ? p->bytes : most;
        most -= bytes;
        if (p->data) {
            vector[n++] = (struct iovec){(void *)p->data, bytes};
            continue;
        }
        size_t at = ring % QUEUE_RING;
        size_t before_wrap = QUEUE_RING - at < bytes ? QUEUE_RING - at : bytes;
        vector[n++] = (struct iovec){(void *)(q->ring + at), before_wrap};
        if (before_wrap < bytes)
            vector[n++] = (struct iovec){(void *)q->ring, bytes - before_wrap};
        ring += bytes;
    }
    return n;
}

static void queue_drop(struct queue *q, size_t bytes)
{
    q->bytes -= bytes;
    while (bytes) {
        struct piece *p = &q->piece[q->first % QUEUE_PIECES];
        size_t part = bytes < p->bytes ? bytes : p->bytes;
        if (p->data)
            p->data += part;
        else
            q->ring_first += part;
        p->bytes -= part;
        bytes -= part;
        if (p->bytes)
            return;
        q->first++;
        if (p->sent)
            p->sent(p->tag);
    }
}

void queue_abandon(struct queue *q, queue_sent *sent)
{
    for (; q->first != q->end; q->first++) {
        struct piece *p = &q->piece[q->first % QUEUE_PIECES];
        if (p->data && p->sent == sent)
            sent(p->tag);
    }
    q->ring_first = q->ring_end;
    q->bytes = 0;
}

bool queue_send(struct queue *q, int fd)
{
    for (size_t all = 0; !queue_empty(q) && all < QUEUE_SEND_MOST;) {
        struct iovec vector[VECTORS];
        struct msghdr message = {.msg_iov = vector,
                                 .msg_iovlen =
                                     (size_t)queue_vectors(q, vector, QUEUE_SEND_MOST - all)};
        ssize_t sent = message.msg_iovlen == 1
                           ? system_send(fd, vector->iov_base, vector->iov_len, SENDING)
                           : system_sendmsg(fd, &message, SENDING);
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        queue_drop(q, (size_t)sent);
        all += (size_t)sent;
    }
    return true;
}
