/* The state of a job that was started by a unique id, and its connections: what is sent and
 * received on them, and how a failure is sent to all. All other files of this room use it.
 *
 * Connections stay open between rounds. There is no thread: a PE that is in a round serves its
 * connections. */
#ifndef GSHMEM_UID_WIRE_H
#define GSHMEM_UID_WIRE_H

#include <sys/types.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/uid/frame.h"
#include "bootstrap/uid/id.h"

/* A connection that PE 0 has accepted; a PE's, once its JOIN is proven. */
struct uid_peer {
    int fd; /* -1: none */
    struct sockaddr_storage from;
    uint64_t since;
    unsigned char nonce[UID_NONCE_BYTES]; /* ours until the JOIN, then the PE's own */
    char machine[UID_NAME_BYTES];
    size_t have; /* bytes of the next frame */
    unsigned char in[UID_INCOMING_MAX];
};

struct uid {
    struct bootstrap base;
    struct bootstrap_request core; /* what the core lends: fail, info, the timeout */
    struct uid_id id;
    uint32_t round;
    bool broken;
    int *node;
    unsigned char *blobs; /* the last ROUND, */
    uint32_t *offset;    /* and where each PE's blob is in it */

    int root_fd;           /* of PE 1 …: the connection to PE 0 */
    struct uid_peer *peer; /* of PE 0: [n_pes], its own unused */
    uint16_t *blob_bytes;  /* of PE 0: the blobs of this round as they arrive; */
    unsigned char (*blob)[BOOTSTRAP_BLOB_MAX];
    unsigned char own[BOOTSTRAP_BLOB_MAX]; /* this PE's blob of this round */
    uint16_t own_bytes;
};

/* ---- Any PE ---- */

/* Sends a frame and returns 0, or -1 with errno. */
int uid_wire_send(int fd, uint32_t type, const void *payload, size_t bytes, uint64_t deadline);
/* Sends an ABORT to fd, if it takes that without waiting. */
void uid_wire_send_abort(int fd, int status, int pe, const char *text);
/* Makes room for a ROUND of so many bytes in u->blobs. */
bool uid_wire_reserve(struct uid *u, size_t bytes);

/* ---- PE 0 ---- */

enum uid_received { UID_WHOLE, UID_PART, UID_CLOSED, UID_WRONG };

/* Reads on until the frame in p->in is whole, as far as it goes without waiting. */
enum uid_received uid_wire_receive(struct uid_peer *p, int n_pes);
/* The type of the frame that is whole. */
uint32_t uid_wire_type(const struct uid_peer *p);
void uid_wire_drop(struct uid_peer *p);

/* Sends a frame to all PEs; a failure ends the job. */
gshmem_status_t uid_wire_send_all(struct uid *u, uint32_t type, const void *payload, size_t bytes);
/* Sends an ABORT to all PEs, so that none of them waits for its own timeout. */
void uid_wire_abort_all(struct uid *u, int status, int pe, const char *text);
/* Decides on a failure, and sends it to all PEs. */
gshmem_status_t uid_wire_fail_all(struct uid *u, gshmem_status_t status, int pe, const char *text);
/* Decides that the time is over: `absent` is true of the missing PEs, `what` is what they have not
 * done. */
gshmem_status_t uid_wire_fail_late(struct uid *u, const char *what,
                                   bool (*absent)(const struct uid *u, int pe));

/* ---- PE 1 and on ---- */

/* They wait so much longer than PE 0, so that its explanation of a failure arrives. */
enum { UID_GRACE_SECONDS = 5 };

/* Reads the header of a frame that must be of this type; `wanted` names it in messages. */
gshmem_status_t uid_wire_expect(struct uid *u, int fd, uint32_t type, const char *wanted,
                                uint64_t deadline, struct uid_header *h);
/* Decides on a failure of a read, which returned n. */
gshmem_status_t uid_wire_no_frame(struct uid *u, ssize_t n, const char *wanted);

#endif
