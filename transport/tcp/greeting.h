/* How two PEs make sure of each other before anything else is said, without telling the key that
 * they share: who opened the stream says hello, with a number nobody can foretell; the other
 * answers with such a number of its own and the proof that it has the key; then the opener proves
 * the same. A proof is the HMAC-SHA256, by the key, of who proves, the hello and the other
 * number: good for this stream and no other, so that who has overheard it has nothing. What
 * follows is not encrypted.
 *
 * The hello has a proof behind it, too, of itself: a stranger who has overheard nothing cannot
 * pretend to be a PE that is about to come in. Who says a hello again that it has overheard gets
 * no further. */
#ifndef GSHMEM_TRANSPORT_TCP_GREETING_H
#define GSHMEM_TRANSPORT_TCP_GREETING_H

#include <string.h>
#include <sys/random.h>

#include "transport/tcp/frame.h"
#include "runtime/base/hmac.h"

enum greeting_role { GREETING_OPENER = 1, GREETING_ACCEPTOR, GREETING_HELLO };

static inline void greeting_prove(const unsigned char key[TRANSPORT_KEY_BYTES], enum greeting_role who,
                                  const unsigned char hello[HELLO_BYTES],
                                  const unsigned char nonce[NONCE_BYTES],
                                  unsigned char proof[PROOF_BYTES])
{
    unsigned char all[1 + HELLO_BYTES + NONCE_BYTES] = {(unsigned char)who};

    memcpy(all + 1, hello, HELLO_BYTES);
    memcpy(all + 1 + HELLO_BYTES, nonce, NONCE_BYTES);
    hmac_sha256(key, TRANSPORT_KEY_BYTES, all, sizeof all, proof);
}

/* The proof behind a hello, before there is another number. */
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
