#define _GNU_SOURCE
#include "bootstrap/uid/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "runtime/base/system.h"

int uid_wire_send(int fd, uint32_t type, const void *payload, size_t bytes, uint64_t deadline)
{
    struct uid_header h = {.type = type, .bytes = (uint32_t)bytes};
    unsigned char small[512];

    if (sizeof h + bytes > sizeof small)
        return stream_write_all(fd, &h, sizeof h, deadline) ||
                       stream_write_all(fd, payload, bytes, deadline)
                   ? -1
                   : 0;
    memcpy(small, &h, sizeof h);
    memcpy(small + sizeof h, payload, bytes);
    return stream_write_all(fd, small, sizeof h + bytes, deadline);
}

void uid_wire_send_abort(int fd, int status, int pe, const char *text)
{
    struct uid_abort a = {.status = status, .pe = pe};

    snprintf(a.text, sizeof a.text, "%s", text);
    uid_wire_send(fd, UID_ABORT, &a, sizeof a, 0);
}

bool uid_wire_reserve(struct uid *u, size_t bytes)
{
    unsigned char *room = realloc(u->blobs, bytes);

    if (!room)
        return false;
    u->blobs = room;
    return true;
}

/* ---- What arrives ---- */

/* Reads on until the frame is whole, as far as it goes without waiting. */
enum uid_received uid_wire_receive(struct uid_peer *p, int n_pes)
{
    struct uid_header h;

    for (;;) {
        size_t want = sizeof h;
        if (p->have >= sizeof h) {
            memcpy(&h, p->in, sizeof h);
            if (!uid_header_valid(&h, n_pes) || h.bytes > sizeof(struct uid_blob))
                return UID_WRONG;
            want += h.bytes;
            if (p->have == want)
                return UID_WHOLE;
        }
        ssize_t n = system_recv(p->fd, p->in + p->have, want - p->have, MSG_DONTWAIT);
        if (n > 0)
            p->have += (size_t)n;
        else if (n == 0)
            return UID_CLOSED;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return UID_PART;
        else if (errno != EINTR)
            return UID_CLOSED;
    }
}

uint32_t uid_wire_type(const struct uid_peer *p)
{
    struct uid_header h;

    memcpy(&h, p->in, sizeof h);
    return h.type;
}

void uid_wire_drop(struct uid_peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    p->have = 0;
}

/* ---- PE 0 ends the job ---- */

/* Sends an ABORT to all PEs, so that none of them waits for its own timeout. */
void uid_wire_abort_all(struct uid *u, int status, int pe, const char *text)
{
    for (int i = 1; i < u->base.n_pes; i++) {
        if (u->peer[i].fd >= 0)
            uid_wire_send_abort(u->peer[i].fd, status, pe, text);
    }
    u->broken = true;
}

/* Decides on a failure, and sends it to all PEs. */
gshmem_status_t uid_wire_fail_all(struct uid *u, gshmem_status_t status, int pe, const char *text)
{
    uid_wire_abort_all(u, (int)status, pe, text);
    return u->core.fail(status, "unique id: %s", text);
}

/* "1, 3-5, 9" of the PEs for which absent(u, pe) holds, as far as it fits. */
static void wire_list_pes(char *text, size_t size, const struct uid *u,
                     bool (*absent)(const struct uid *u, int pe))
{
    size_t used = 0;

    text[0] = 0;
    for (int pe = 1; pe < u->base.n_pes; pe++) {
        int last = pe;
        if (!absent(u, pe))
            continue;
        while (last + 1 < u->base.n_pes && absent(u, last + 1))
            last++;
        if (size - used < 32) {
            snprintf(text + used, size - used, ", …");
            return;
        }
        used += (size_t)snprintf(text + used, size - used, last > pe ? "%s%d-%d" : "%s%d",
                                 used ? ", " : "", pe, last);
        pe = last;
    }
}

gshmem_status_t uid_wire_fail_late(struct uid *u, const char *what,
                              bool (*absent)(const struct uid *u, int pe))
{
    char text[UID_TEXT_BYTES], pes[120];

    wire_list_pes(pes, sizeof pes, u, absent);
    snprintf(text, sizeof text, "PE 0 has waited %d s (GSHMEM_INIT_TIMEOUT), and these PEs %s: %s",
             u->core.timeout_seconds, what, pes);
    return uid_wire_fail_all(u, GSHMEM_ERR_TIMEOUT, 0, text);
}

gshmem_status_t uid_wire_send_all(struct uid *u, uint32_t type, const void *payload,
                                      size_t bytes)
{
    uint64_t deadline = stream_deadline(u->core.timeout_seconds);

    for (int pe = 1; pe < u->base.n_pes; pe++) {
        char text[UID_TEXT_BYTES];
        if (uid_wire_send(u->peer[pe].fd, type, payload, bytes, deadline) == 0)
            continue;
        snprintf(text, sizeof text, "PE %d on %s cannot be written to: %s", pe, u->peer[pe].machine,
                 strerror(errno));
        return uid_wire_fail_all(u, GSHMEM_ERR_PEER_DEAD, pe, text);
    }
    return GSHMEM_OK;
}

/* ---- A PE reads what PE 0 sends ---- */

/* PE 0 has sent another frame than was expected: an ABORT has the reason, all else is wrong. */
static gshmem_status_t wire_instead(struct uid *u, int fd, const struct uid_header *h,
                               const char *wanted, uint64_t deadline)
{
    struct uid_abort a;

    u->broken = true;
    if (h->type == UID_ABORT && h->bytes == sizeof a &&
        stream_read_all(fd, &a, sizeof a, deadline) > 0 && uid_abort_valid(&a)) {
        bool known = a.status > GSHMEM_OK && a.status <= GSHMEM_ERR_SYSTEM;
        return u->core.fail(known ? (gshmem_status_t)a.status : GSHMEM_ERR_ABORTED,
                            "unique id: PE 0 says: %s", a.text);
    }
    return u->core.fail(GSHMEM_ERR_BOOTSTRAP,
                        "unique id: expected %s from PE 0, got a frame of type 0x%x with %u bytes",
                        wanted, h->type, h->bytes);
}

gshmem_status_t uid_wire_no_frame(struct uid *u, ssize_t n, const char *wanted)
{
    u->broken = true;
    if (n == 0 || errno == ECONNRESET)
        return u->core.fail(GSHMEM_ERR_PEER_DEAD,
                            "unique id: PE 0 has left where %s was expected from it", wanted);
    if (errno == ETIMEDOUT)
        return u->core.fail(GSHMEM_ERR_TIMEOUT,
                            "unique id: no %s from PE 0 within %d s (GSHMEM_INIT_TIMEOUT)", wanted,
                            u->core.timeout_seconds);
    return u->core.fail(GSHMEM_ERR_BOOTSTRAP, "unique id: cannot read %s from PE 0: %s", wanted,
                        strerror(errno));
}

/* Reads the header of a frame that must be of this type. */
gshmem_status_t uid_wire_expect(struct uid *u, int fd, uint32_t type, const char *wanted,
                                   uint64_t deadline, struct uid_header *h)
{
    ssize_t n = stream_read_all(fd, h, sizeof *h, deadline);

    if (n <= 0)
        return uid_wire_no_frame(u, n, wanted);
    if (h->type != type || !uid_header_valid(h, u->base.n_pes))
        return wire_instead(u, fd, h, wanted, deadline);
    return GSHMEM_OK;
}
