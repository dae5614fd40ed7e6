/* The state of a job that was started by a unique id, and its two sides: PE 0, which all others
 * connect to (root.c, door.c), and they (join.c). Connections stay open between rounds. No thread:
 * whoever is in a round looks after its connections. */
#ifndef GSHMEM_UID_UID_H
#define GSHMEM_UID_UID_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/uid/frame.h"
#include "bootstrap/uid/id.h"

/* A connection that PE 0 has accepted; a PE's, once its JOIN is proven. */
struct uid_peer {
    int fd; /* -1: none */
    uint64_t since;
    unsigned char nonce[UID_NONCE_BYTES]; /* ours until the JOIN, then the PE's own */
    char host[UID_HOST_BYTES];
    size_t have; /* bytes of the next frame */
    unsigned char in[UID_INCOMING_MAX];
};

struct uid {
    struct bootstrap base;
    struct bootstrap_request core; /* what the core lends: fail, info, the timeout */
    struct uid_id id;
    uint32_t round;
    bool broken;
    int *host;
    unsigned char *told; /* the last ROUND, */
    uint32_t *offset;    /* and where each PE's blob is in it */
    size_t told_bytes;

    int root_fd;           /* of PE 1 …: the connection to PE 0 */
    struct uid_peer *peer; /* of PE 0: [n_pes], its own unused */
    uint16_t *blob_bytes;  /* of PE 0: the blobs of this round as they arrive; */
    unsigned char (*blob)[BOOTSTRAP_BLOB_MAX];
    unsigned char own[BOOTSTRAP_BLOB_MAX]; /* this PE's blob of this round */
    uint16_t own_bytes;
};

/* Sends a frame and returns 0, or -1 with errno. */
int uid_send(int fd, uint32_t type, const void *payload, size_t bytes, uint64_t deadline);
/* Tells fd that the job is over, if it takes it without waiting. */
void uid_send_abort(int fd, int status, int pe, const char *text);
/* Makes room for a ROUND of so many bytes in u->told. */
bool uid_room(struct uid *u, size_t bytes);

/* Of PE 0, in root.c; those between open and gather are for door.c, too. */
gshmem_status_t uid_root_open(struct uid *u);

enum uid_received { UID_WHOLE, UID_PART, UID_CLOSED, UID_WRONG };

/* Reads on until the frame in p->in is whole, as far as it goes without waiting. */
enum uid_received uid_root_receive(struct uid_peer *p, int n_pes);
/* The type of the frame that is whole. */
uint32_t uid_root_type(const struct uid_peer *p);
void uid_root_drop(struct uid_peer *p);
/* Decides on a failure that all PEs have to hear of. */
gshmem_status_t uid_root_end(struct uid *u, gshmem_status_t status, int pe, const char *text);
/* Decides that the time is over; absent tells for which PEs, `what` what they have not done. */
gshmem_status_t uid_root_late(struct uid *u, const char *what,
                              bool (*absent)(const struct uid *u, int pe));

/* In door.c: returns when all PEs have joined. */
gshmem_status_t uid_root_gather(struct uid *u, const int *listener, int listeners);
gshmem_status_t uid_root_fence(struct uid *u);
void uid_root_abort(struct uid *u, int status, int pe, const char *text);

gshmem_status_t uid_join_open(struct uid *u);
gshmem_status_t uid_join_fence(struct uid *u);

#endif
