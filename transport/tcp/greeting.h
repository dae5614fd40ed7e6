/* How two PEs make sure of each other before anything else is said, without telling the job's secret:
 * who opened the stream says hello, with a number nobody can foretell; the other answers with such a
 * number of its own and the proof that it knows the secret; then the opener proves the same. A proof
 * is the HMAC-SHA256, by the secret, of who proves, the hello and the other number: good for this
 * stream and no other, so that who has overheard it has nothing. What follows is not encrypted. */
#ifndef GSHMEM_TRANSPORT_TCP_GREETING_H
#define GSHMEM_TRANSPORT_TCP_GREETING_H

#include <string.h>
#include <sys/random.h>

#include "transport/tcp/frame.h"
#include "transport/tcp/hmac.h"

enum greeting_role { GREETING_OPENER = 1, GREETING_ACCEPTOR };

static inline void greeting_prove(const unsigned char secret[32], enum greeting_role who,
                                  const unsigned char hello[HELLO_BYTES],
                                  const unsigned char nonce[NONCE_BYTES],
                                  unsigned char proof[PROOF_BYTES])
{
    unsigned char all[1 + HELLO_BYTES + NONCE_BYTES] = {(unsigned char)who};

    memcpy(all + 1, hello, HELLO_BYTES);
    memcpy(all + 1 + HELLO_BYTES, nonce, NONCE_BYTES);
    hmac_sha256(secret, 32, all, sizeof all, proof);
}

static inline bool greeting_draw(unsigned char nonce[NONCE_BYTES])
{
    return getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES;
}

#endif
