/* The unique id and the frames that its PEs exchange. */
#include "bootstrap/uid/frame.h"
#include "bootstrap/uid/id.h"
#include "bootstrap/uid/siphash.h"

#include "check.h"

static void hash_is_siphash(void)
{
    unsigned char key[16], message[15];

    for (int i = 0; i < 16; i++)
        key[i] = (unsigned char)i;
    memcpy(message, key, sizeof message);
    /* The vectors of the paper that defines it. */
    CHECK(siphash(key, message, 15) == 0xa129ca6149be45e5u);
    CHECK(siphash(key, message, 0) == 0x726fdb47dd0e0e31u);
}

static void rounds_come_back(void)
{
    static const uint16_t bytes[] = {3, 0, BOOTSTRAP_BLOB_MAX, 1};
    static unsigned char blob[4][BOOTSTRAP_BLOB_MAX], wire[4 * (2 + BOOTSTRAP_BLOB_MAX) + 4];
    uint32_t offset[4];
    uint16_t length;

    for (int pe = 0; pe < 4; pe++)
        memset(blob[pe], 'a' + pe, sizeof blob[pe]);
    size_t n = uid_round_bytes(bytes, 4);
    CHECK_EQ(n, 4 + 4 * 2 + 3 + 0 + BOOTSTRAP_BLOB_MAX + 1);
    uid_round_encode(wire, 9, bytes, blob, 4);
    CHECK(uid_round_decode(wire, n, 9, offset, 4));
    for (int pe = 0; pe < 4; pe++) {
        memcpy(&length, wire + offset[pe], 2);
        CHECK_EQ(length, bytes[pe]);
        CHECK(memcmp(wire + offset[pe] + 2, blob[pe], length) == 0);
    }
    CHECK(!uid_round_decode(wire, n, 8, offset, 4)); /* another round */
    for (size_t cut = 0; cut < n; cut++)
        CHECK(!uid_round_decode(wire, cut, 9, offset, 4));
    CHECK(!uid_round_decode(wire, n, 9, offset, 3)); /* bytes are left */
    CHECK(!uid_round_decode(wire, n, 9, offset, 5)); /* a PE is missing */
    length = BOOTSTRAP_BLOB_MAX + 1;
    memcpy(wire + offset[2], &length, 2);
    CHECK(!uid_round_decode(wire, n, 9, offset, 4));
}

static void headers_are_held_to_their_type(void)
{
    const struct {
        struct uid_header h;
        bool valid;
    } cases[] = {
        {{UID_HELLO, 20}, true},
        {{UID_HELLO, 21}, false},
        {{UID_JOIN, 132}, true},
        {{UID_JOIN, 0}, false},
        {{UID_WELCOME, 8}, true},
        {{UID_NODES, 12}, true},
        {{UID_NODES, 16}, false},
        {{UID_BLOB, 4}, true},
        {{UID_BLOB, 3}, false},
        {{UID_BLOB, 260}, true},
        {{UID_BLOB, 261}, false},
        {{UID_ROUND, 10}, true},
        {{UID_ROUND, 9}, false},
        {{UID_ROUND, 4 + 3 * 258}, true},
        {{UID_ROUND, 5 + 3 * 258}, false},
        {{UID_ROUND, 0xffffffff}, false},
        {{UID_ABORT, 248}, true},
        {{UID_ABORT, 247}, false},
        {{0x20544547, 0}, false},
        {{UID_TYPE(8), 0}, false},
        {{0, 0}, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (uid_header_valid(&cases[i].h, 3) != cases[i].valid)
            CHECK_FAIL("type 0x%x with %u bytes", cases[i].h.type, cases[i].h.bytes);
    }
}

static void texts_are_made_harmless(void)
{
    struct uid_abort a = {.text = "a\x1b[2Jb\n"};
    struct uid_join j;

    CHECK(uid_abort_valid(&a));
    CHECK_STR(a.text, "a?[2Jb?");
    memset(&a, 'x', sizeof a);
    CHECK(!uid_abort_valid(&a));
    memset(&j, 'x', sizeof j);
    CHECK(!uid_join_valid(&j));
}

static void proofs_cover_what_is_said(void)
{
    unsigned char secret[UID_SECRET_BYTES] = {1}, nonce[UID_NONCE_BYTES] = {2};
    struct uid_join j = {.pe = 1, .n_pes = 2};
    uint64_t proof = uid_join_proof(secret, nonce, &j);

    uid_proof_set(j.proof, proof);
    CHECK(uid_proof_equal(j.proof, uid_join_proof(secret, nonce, &j)));
    CHECK(!uid_proof_equal(j.proof, uid_welcome_proof(secret, nonce, &j)));
    j.pe = 0;
    CHECK(!uid_proof_equal(j.proof, uid_join_proof(secret, nonce, &j)));
    j.pe = 1;
    nonce[15] ^= 1;
    CHECK(!uid_proof_equal(j.proof, uid_join_proof(secret, nonce, &j)));
    nonce[15] ^= 1;
    secret[15] ^= 1;
    CHECK(!uid_proof_equal(j.proof, uid_join_proof(secret, nonce, &j)));
}

static void damaged_ids_are_noticed(void)
{
    gshmem_uniqueid_t uid, other;
    struct uid_id id;

    CHECK_OK(gshmem_get_uniqueid(&uid));
    CHECK(uid_id_decode(&uid, &id));
    CHECK(id.n_addresses >= 1 && id.port != 0);
    for (size_t i = 0; i < sizeof uid; i++) {
        other = uid;
        ((unsigned char *)&other)[i] ^= 0x10;
        CHECK(!uid_id_decode(&other, &id));
    }
    CHECK_OK(gshmem_get_uniqueid(&other));
    CHECK(memcmp(&uid, &other, sizeof uid) != 0);
    CHECK_FAILS(gshmem_get_uniqueid(NULL), GSHMEM_ERR_ARGUMENT, "uid is NULL");
}

static void ids_are_not_made_for_ever(void)
{
    gshmem_uniqueid_t uid;
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < 100 && !status; i++)
        status = gshmem_get_uniqueid(&uid);
    CHECK_EQ(status, GSHMEM_ERR_STATE);
}

int main(void)
{
    hash_is_siphash();
    rounds_come_back();
    headers_are_held_to_their_type();
    texts_are_made_harmless();
    proofs_cover_what_is_said();
    damaged_ids_are_noticed();
    ids_are_not_made_for_ever();
    return 0;
}
