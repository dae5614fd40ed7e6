#include "bootstrap/uid/frame.h"

#include <string.h>

#include "bootstrap/uid/siphash.h"

bool uid_header_valid(const struct uid_header *h, int n_pes)
{
    size_t pes = (size_t)n_pes;

    switch (h->type) {
    case UID_HELLO:
        return h->bytes == sizeof(struct uid_hello);
    case UID_JOIN:
        return h->bytes == sizeof(struct uid_join);
    case UID_WELCOME:
        return h->bytes == sizeof(struct uid_welcome);
    case UID_NODES:
        return h->bytes == pes * sizeof(int32_t);
    case UID_BLOB:
        return h->bytes >= 4 && h->bytes <= sizeof(struct uid_blob);
    case UID_ROUND:
        return h->bytes >= 4 + 2 * pes && h->bytes <= 4 + pes * (2 + BOOTSTRAP_BLOB_MAX);
    case UID_ABORT:
        return h->bytes == sizeof(struct uid_abort);
    default:
        return false;
    }
}

/* What is shown to people must not play with their terminal. */
static bool clean_text(char *text, size_t size)
{
    if (!memchr(text, 0, size))
        return false;
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
    }
    return true;
}

bool uid_join_valid(struct uid_join *j)
{
    return clean_text(j->machine, sizeof j->machine);
}

bool uid_abort_valid(struct uid_abort *a)
{
    return clean_text(a->text, sizeof a->text);
}

/* ---- Rounds ---- */

size_t uid_round_bytes(const uint16_t *bytes, int n_pes)
{
    size_t total = 4;

    for (int pe = 0; pe < n_pes; pe++)
        total += 2u + bytes[pe];
    return total;
}

void uid_round_encode(unsigned char *to, uint32_t round, const uint16_t *bytes,
                      unsigned char (*blob)[BOOTSTRAP_BLOB_MAX], int n_pes)
{
    memcpy(to, &round, 4);
    to += 4;
    for (int pe = 0; pe < n_pes; pe++) {
        memcpy(to, &bytes[pe], 2);
        memcpy(to + 2, blob[pe], bytes[pe]);
        to += 2 + bytes[pe];
    }
}

bool uid_round_decode(const unsigned char *from, size_t bytes, uint32_t round, uint32_t *offset,
                      int n_pes)
{
    uint32_t number;
    uint16_t length;
    size_t at = 4;

    if (bytes < 4)
        return false;
    memcpy(&number, from, 4);
    for (int pe = 0; pe < n_pes; pe++) {
        if (bytes - at < 2)
            return false;
        memcpy(&length, from + at, 2);
        if (length > BOOTSTRAP_BLOB_MAX || bytes - at - 2 < length)
            return false;
        offset[pe] = (uint32_t)at;
        at += 2u + length;
    }
    return at == bytes && number == round;
}

/* ---- Proofs ---- */

/* Half of the secret is the key for each direction, so that no proof can be sent back. */
static uint64_t prove(const unsigned char key[16], const unsigned char nonce[UID_NONCE_BYTES],
                      const struct uid_join *j)
{
    unsigned char said[UID_NONCE_BYTES + offsetof(struct uid_join, proof)];

    memcpy(said, nonce, UID_NONCE_BYTES);
    memcpy(said + UID_NONCE_BYTES, j, offsetof(struct uid_join, proof));
    return siphash(key, said, sizeof said);
}

uint64_t uid_join_proof(const unsigned char secret[UID_SECRET_BYTES],
                        const unsigned char nonce[UID_NONCE_BYTES], const struct uid_join *j)
{
    return prove(secret, nonce, j);
}

uint64_t uid_welcome_proof(const unsigned char secret[UID_SECRET_BYTES],
                           const unsigned char nonce[UID_NONCE_BYTES], const struct uid_join *j)
{
    return prove(secret + 16, nonce, j);
}

void uid_proof_set(uint32_t proof[2], uint64_t value)
{
    memcpy(proof, &value, sizeof value);
}

/* One comparison of the whole: its time does not depend on where the two differ. */
bool uid_proof_equal(const uint32_t proof[2], uint64_t value)
{
    uint64_t given;

    memcpy(&given, proof, sizeof given);
    return given == value;
}
