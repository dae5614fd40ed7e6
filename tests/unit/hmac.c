/* HMAC-SHA256 against the published examples: FIPS 180 and RFC 4231. */
#include "../check.h"
#include "runtime/base/hmac.h"

static void expect(const unsigned char got[SHA256_BYTES], const char *hex)
{
    char text[2 * SHA256_BYTES + 1];

    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", got[i]);
    if (strcmp(text, hex) != 0)
        CHECK_FAIL("%s is not %s", text, hex);
}

/* In two pieces, wherever they meet. */
static void digest(const char *text, const char *hex)
{
    unsigned char out[SHA256_BYTES];

    for (size_t first = 0; first <= strlen(text); first++) {
        sha256(text, first, text + first, strlen(text) - first, out);
        expect(out, hex);
    }
}

static void digests(void)
{
    static char many[1000000];
    unsigned char out[SHA256_BYTES];

    digest("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(many, 'a', sizeof many);
    sha256(many, sizeof many, "", 0, out);
    expect(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void mac(const void *key, size_t key_bytes, const void *message, size_t bytes, const char *hex)
{
    unsigned char out[SHA256_BYTES];

    hmac_sha256(key, key_bytes, message, bytes, out);
    expect(out, hex);
}

static void macs(void)
{
    static const char first[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char second[] = "This is a test using a larger than block-size key and a larger than "
                                 "block-size data. The key needs to be hashed before being used by the "
                                 "HMAC algorithm.";
    unsigned char key[131], data[50];

    memset(key, 0x0b, 20);
    mac(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    mac("Jefe", 4, "what do ya want for nothing?", 28,
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    mac(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    mac(key, 131, first, sizeof first - 1,
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    mac(key, 131, second, sizeof second - 1,
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    for (int i = 0; i < 25; i++)
        key[i] = (unsigned char)(i + 1);
    memset(data, 0xcd, sizeof data);
    mac(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

static void comparisons(void)
{
    unsigned char a[SHA256_BYTES] = {0}, b[SHA256_BYTES] = {0};

    CHECK(hmac_same(a, b));
    for (int bit = 0; bit < 8 * SHA256_BYTES; bit++) {
        b[bit / 8] = (unsigned char)(1 << bit % 8);
        CHECK(!hmac_same(a, b));
        b[bit / 8] = 0;
    }
}

int main(void)
{
    digests();
    macs();
    comparisons();
    return 0;
}
