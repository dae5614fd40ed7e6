/* How two PEs prove to each other that they have the key of their pair, without sending it.
 *
 *     opener                                  acceptor
 *     hello with a random number, proof 0 ──►          proof 0 is of the hello alone
 *                            ◄── a random number, proof 1
 *     proof 2 ──────────────────────────────►
 *
 * A proof is the HMAC-SHA256, by the key, of the side that proves, the hello and the acceptor's
 * number: it is good for this stream and no other, so that an eavesdropper gains nothing. Proof 0
 * keeps away strangers who have overheard nothing; one who repeats a hello that it has overheard
 * gets no further. What follows on the stream is not encrypted. */
#ifndef GSHMEM_TRANSPORT_TCP_GREETING_H
#define GSHMEM_TRANSPORT_TCP_GREETING_H

#include <string.h>
#include <sys/random.h>

#include "transport/tcp/frame.h"
#include "runtime/base/hmac.h"

enum greeting_role { GREETING_OPENER = 1, GREETING_ACCEPTOR, GREETING_HELLO };

static inline void greeting_prove(const unsigned char key[TRANSPORT_KEY_BYTES],
                                  enum greeting_role who, const unsigned char hello[HELLO_BYTES],
                                  const unsigned char nonce[NONCE_BYTES],
                                  unsigned char proof[PROOF_BYTES])
{
    unsigned char all[1 + HELLO_BYTES + NONCE_BYTES] = {(unsigned char)who};

    memcpy(all + 1, hello, HELLO_BYTES);
    memcpy(all + 1 + HELLO_BYTES, nonce, NONCE_BYTES);
    hmac_sha256(key, TRANSPORT_KEY_BYTES, all, sizeof all, proof);
}

/* Proof 0, before there is a number of the acceptor. */
static inline void greeting_prove_hello(const unsigned char key[TRANSPORT_KEY_BYTES],
                                        const unsigned char hello[HELLO_BYTES],
                                        unsigned char proof[PROOF_BYTES])
{
    static const unsigned char none[NONCE_BYTES];

    greeting_prove(key, GREETING_HELLO, hello, none, proof);
}

static inline bool greeting_draw(unsigned char nonce[NONCE_BYTES])
{
    return getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES;
}

#endif
