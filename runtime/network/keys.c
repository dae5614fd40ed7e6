#define _GNU_SOURCE
#include "runtime/network/keys.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/system.h"

/* The purpose is part of what is hashed, so that a key is good for nothing else. */
static const char purpose[16] = "gshmem stream 1", id_purpose[16] = "gshmem job id 1";

/* The two PEs of a key, the lower one first, so that both sides hash the same. */
struct parties {
    char purpose[16];
    uint32_t pe[2]; /* little-endian */
    unsigned char public[2][X25519_BYTES];
    unsigned char id[SHA256_BYTES];
};

_Static_assert(sizeof(struct parties) == 16 + 8 + 64 + 32, "hashed as bytes");

gshmem_status_t keys_draw(struct keys *k, const gshmem_uniqueid_t *uid)
{
    memset(k, 0, sizeof *k);
    if (!system_random(k->private, sizeof k->private))
        return fail(GSHMEM_ERR_SYSTEM, "start-up: getrandom: %s", strerror(errno));
    x25519_public(k->public, k->private);
    if (uid)
        hmac_sha256(uid->opaque, sizeof uid->opaque, id_purpose, sizeof id_purpose, k->id);
    return GSHMEM_OK;
}

gshmem_status_t keys_agree(const struct keys *k, int me, int pe,
                           const unsigned char theirs[X25519_BYTES],
                           unsigned char key[SHA256_BYTES])
{
    const bool first = me < pe;
    struct parties p = {
        .pe = {htole32((uint32_t)(first ? me : pe)), htole32((uint32_t)(first ? pe : me))}};
    unsigned char secret[X25519_BYTES];

    if (!x25519_agree(secret, k->private, theirs))
        return fail(GSHMEM_ERR_BOOTSTRAP,
                    "PE %d published a public key that no PE has: somebody changes what "
                    "the launcher carries",
                    pe);
    memcpy(p.purpose, purpose, sizeof purpose);
    memcpy(p.public[!first], k->public, X25519_BYTES);
    memcpy(p.public[first], theirs, X25519_BYTES);
    memcpy(p.id, k->id, sizeof p.id);
    hmac_sha256(secret, sizeof secret, &p, sizeof p, key);
    explicit_bzero(secret, sizeof secret);
    return GSHMEM_OK;
}

void keys_forget(struct keys *k)
{
    explicit_bzero(k, sizeof *k);
}
