/* The messages between PE 0 and the others: their form and their checks.
 *
 * A frame is a header and a payload. On a connection:
 *
 *     PE 0: HELLO with a nonce        the other: JOIN with its own nonce and a proof
 *     PE 0: WELCOME with a proof, and when all have joined, NODES
 *     each round:  the other: BLOB    PE 0: ROUND, when it has all blobs
 *     either, at any time after the WELCOME: ABORT, with the reason
 *
 * A proof is a keyed hash of both nonces and of the JOIN. So the secret itself is never sent, and
 * what is read on the wire is of no use for another connection. Before PE 0 has sent its proof, no
 * frame from one of its addresses is believed: another machine may have the same address. What
 * follows a proven JOIN is not protected: it crosses the same network as the data of the program.
 *
 * Numbers are in the byte order of the PEs, which share memory and so share that, too. A stranger
 * with the other order is noticed by the type in the header. */
#ifndef GSHMEM_UID_FRAME_H
#define GSHMEM_UID_FRAME_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/nodes.h"

enum {
    UID_VERSION = 2,
    UID_NONCE_BYTES = 16,
    UID_SECRET_BYTES = 32,
    UID_NAME_BYTES = NODES_NAME_BYTES,
    UID_TEXT_BYTES = 240 /* of an abort's reason with its final zero */
};

/* The first three bytes are the same in all. */
#define UID_TYPE(n) (0x55534700u | (n)) /* "GSU" and a number */
enum uid_type {
    UID_HELLO = UID_TYPE(1),
    UID_JOIN = UID_TYPE(2),
    UID_WELCOME = UID_TYPE(3),
    UID_NODES = UID_TYPE(4),
    UID_BLOB = UID_TYPE(5),
    UID_ROUND = UID_TYPE(6),
    UID_ABORT = UID_TYPE(7)
};

struct uid_header {
    uint32_t type;
    uint32_t bytes; /* of the payload */
};

struct uid_hello {
    uint32_t version;
    unsigned char nonce[UID_NONCE_BYTES];
};

struct uid_join {
    uint32_t version;
    int32_t pe;
    int32_t n_pes;
    unsigned char nonce[UID_NONCE_BYTES];
    char machine[UID_NAME_BYTES];
    uint32_t proof[2];
};

struct uid_welcome {
    uint32_t proof[2];
};

struct uid_blob {
    uint32_t round;
    unsigned char bytes[BOOTSTRAP_BLOB_MAX]; /* as many as the header leaves */
};

struct uid_abort {
    int32_t status;
    int32_t pe;
    char text[UID_TEXT_BYTES];
};

static_assert(sizeof(struct uid_header) == 8 && sizeof(struct uid_hello) == 20 &&
                  sizeof(struct uid_join) == 132 && sizeof(struct uid_welcome) == 8 &&
                  sizeof(struct uid_blob) == 4 + BOOTSTRAP_BLOB_MAX &&
                  sizeof(struct uid_abort) == 8 + UID_TEXT_BYTES,
              "no padding on the wire");

/* The longest frame that PE 0 receives. */
enum { UID_INCOMING_MAX = sizeof(struct uid_header) + sizeof(struct uid_blob) };
static_assert(sizeof(struct uid_join) <= sizeof(struct uid_blob) &&
                  sizeof(struct uid_abort) <= sizeof(struct uid_blob),
              "every frame that PE 0 receives fits");

/* Whether a payload of that type may have so many bytes in a job of n_pes. False for a type that is
 * not one of ours. */
bool uid_header_valid(const struct uid_header *h, int n_pes);

/* Whether the text fields of a received frame end within their bounds; makes them printable. */
bool uid_join_valid(struct uid_join *j);
bool uid_abort_valid(struct uid_abort *a);

/* The bytes of a ROUND: its number, then for each PE a length of two bytes and the blob. */
size_t uid_round_bytes(const uint16_t *bytes, int n_pes);
void uid_round_encode(unsigned char *to, uint32_t round, const uint16_t *bytes,
                      unsigned char (*blob)[BOOTSTRAP_BLOB_MAX], int n_pes);
/* Sets offset[pe] to where the length of that PE's blob is. False: this is not a whole ROUND. */
bool uid_round_decode(const unsigned char *from, size_t bytes, uint32_t round, uint32_t *offset,
                      int n_pes);

/* The proofs of a JOIN (over all its fields but the proof) and of a WELCOME. */
uint64_t uid_join_proof(const unsigned char secret[UID_SECRET_BYTES],
                        const unsigned char nonce[UID_NONCE_BYTES], const struct uid_join *j);
uint64_t uid_welcome_proof(const unsigned char secret[UID_SECRET_BYTES],
                           const unsigned char nonce[UID_NONCE_BYTES], const struct uid_join *j);
void uid_proof_set(uint32_t proof[2], uint64_t value);
bool uid_proof_equal(const uint32_t proof[2], uint64_t value);

#endif
