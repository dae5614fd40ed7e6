/* X25519 against the published examples (RFC 7748, 5.2 and 6.1), and at the edges of its arithmetic. */
#include "../check.h"
#include "runtime/base/x25519.h"

static void from_hex(unsigned char out[X25519_BYTES], const char *hex)
{
    CHECK_EQ(strlen(hex), 2 * X25519_BYTES);
    for (int i = 0; i < X25519_BYTES; i++) {
        unsigned byte;
        CHECK_EQ(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (unsigned char)byte;
    }
}

static void expect(const unsigned char got[X25519_BYTES], const char *hex)
{
    char text[2 * X25519_BYTES + 1];

    for (int i = 0; i < X25519_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", got[i]);
    CHECK_STR(text, hex);
}

static void example(const char *scalar, const char *point, const char *result)
{
    unsigned char k[X25519_BYTES], u[X25519_BYTES], out[X25519_BYTES];

    from_hex(k, scalar);
    from_hex(u, point);
    CHECK(x25519_agree(out, k, u));
    expect(out, result);
}

static void examples(void)
{
    example("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
    example("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
}

/* The result becomes the scalar, and the scalar the point, again and again. */
static void many_times(void)
{
    unsigned char k[X25519_BYTES] = {9}, u[X25519_BYTES] = {9}, out[X25519_BYTES];

    for (int i = 1; i <= 1000; i++) {
        CHECK(x25519_agree(out, k, u));
        memcpy(u, k, sizeof u);
        memcpy(k, out, sizeof k);
        if (i == 1)
            expect(k, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
    }
    expect(k, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

static void two_sides(void)
{
    unsigned char a[X25519_BYTES], b[X25519_BYTES], of_a[X25519_BYTES], of_b[X25519_BYTES];
    unsigned char secret[X25519_BYTES];

    from_hex(a, "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    from_hex(b, "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    x25519_public(of_a, a);
    x25519_public(of_b, b);
    expect(of_a, "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
    expect(of_b, "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
    CHECK(x25519_agree(secret, a, of_b));
    expect(secret, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    CHECK(x25519_agree(secret, b, of_a));
    expect(secret, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

/* Points whose order divides 8 give zero with every private key: 0, 1, p - 1, and p, p + 1, which are 0 and
 * 1 once more. The topmost bit of a point does not count. */
static void points_of_no_use(void)
{
    unsigned char k[X25519_BYTES] = {1, 2, 3}, u[X25519_BYTES], out[X25519_BYTES], again[X25519_BYTES];

    for (int low = 0; low < 5; low++) {
        memset(u, low < 2 ? 0 : 0xff, sizeof u);
        u[0] = (unsigned char)(low < 2 ? low : 0xec + low - 2);
        for (int top = 0; top < 2; top++) {
            u[31] = (unsigned char)((low < 2 ? 0 : 0x7f) | top << 7);
            CHECK(!x25519_agree(out, k, u));
        }
    }
    u[0] = 0xef; /* p + 2 is 2 */
    CHECK(x25519_agree(out, k, u));
    memset(u, 0, sizeof u);
    u[0] = 2;
    CHECK(x25519_agree(again, k, u));
    CHECK(memcmp(out, again, sizeof out) == 0);
}

/* Whatever the numbers: with the largest limbs, too, both sides come to one secret. */
static void all_agree(void)
{
    unsigned char key[2][X25519_BYTES], public[2][X25519_BYTES], secret[2][X25519_BYTES];

    srand(7);
    for (int i = 0; i < 300; i++) {
        for (int side = 0; side < 2; side++) {
            for (int n = 0; n < X25519_BYTES; n++)
                key[side][n] = (unsigned char)(i < 20 ? (i >> side & 1 ? 0xff : 0) : rand());
            key[side][7] = (unsigned char)i;
            x25519_public(public[side], key[side]);
        }
        for (int side = 0; side < 2; side++)
            CHECK(x25519_agree(secret[side], key[side], public[!side]));
        CHECK(memcmp(secret[0], secret[1], X25519_BYTES) == 0);
    }
}

int main(void)
{
    examples();
    many_times();
    two_sides();
    points_of_no_use();
    all_agree();
    return 0;
}
