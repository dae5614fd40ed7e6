/* The wire of the TCP transport: what is encoded is decoded, every byte has its place whatever the
 * processor's byte order, and what no PE sends is not taken. */
#include "check.h"
#include "gshmem/atomic.h"
#include "transport/tcp/frame.h"

static void hellos(void)
{
    struct hello h = {.version = FRAME_VERSION, .from = 0x01020304, .to = 5, .n_pes = 0xa0b0c0d0}, d;
    unsigned char bytes[HELLO_BYTES];

    for (int i = 0; i < 32; i++)
        h.nonce[i] = (unsigned char)(200 + i);
    hello_encode(bytes, &h);
    CHECK(memcmp(bytes, "GSHMEMtc", 8) == 0);
    CHECK(memcmp(bytes + 12, "\4\3\2\1" "\5\0\0\0" "\xd0\xc0\xb0\xa0", 12) == 0);
    CHECK_EQ(bytes[24], 200);
    CHECK_EQ(bytes[55], 231);
    CHECK(hello_decode(bytes, &d));
    CHECK(memcmp(&d, &h, sizeof h) == 0);
    for (int at = 0; at < HELLO_BYTES; at++) {
        bytes[at] ^= 0x10;
        if (at < 8 || at >= 56)
            CHECK(!hello_decode(bytes, &d)); /* magic and reserved bytes */
        else
            CHECK(hello_decode(bytes, &d) && memcmp(&d, &h, sizeof h) != 0);
        bytes[at] ^= 0x10;
    }
}

static void requests(void)
{
    struct request_frame f = {.kind = FRAME_PUT, .segment = 2, .amo = 3, .type = 4, .signal_op = 5,
                              .signal_segment = 6, .offset = 0x1122334455667788, .bytes = UINT64_MAX,
                              .a = 1ull << 63, .b = 9}, d;
    unsigned char bytes[REQUEST_BYTES];

    request_encode(bytes, &f);
    CHECK(memcmp(bytes, "\1\2\3\4\5\6\0\0" "\x88\x77\x66\x55\x44\x33\x22\x11", 16) == 0);
    CHECK(memcmp(bytes + 24, "\0\0\0\0\0\0\0\x80" "\11\0\0\0\0\0\0\0", 16) == 0);
    CHECK(request_decode(bytes, &d));
    CHECK(d.kind == f.kind && d.segment == f.segment && d.amo == f.amo && d.type == f.type);
    CHECK(d.signal_op == f.signal_op && d.signal_segment == f.signal_segment);
    CHECK(d.offset == f.offset && d.bytes == f.bytes && d.a == f.a && d.b == f.b);
    for (int kind = 0; kind < 256; kind++) {
        bytes[0] = (unsigned char)kind;
        CHECK_EQ(request_decode(bytes, &d), kind >= FRAME_PUT && kind <= FRAME_BATCH);
    }
    for (int at = 6; at < 8; at++) {
        request_encode(bytes, &f);
        bytes[at] = 1;
        CHECK_EQ(request_decode(bytes, &d), at == 7); /* nobody asks for the answer of a put */
        bytes[at] = 2;
        CHECK(!request_decode(bytes, &d));
    }
    f.signal_op = 0; /* such a put may have more to come, and nothing else may */
    f.more = 1;
    request_encode(bytes, &f);
    CHECK(request_decode(bytes, &d) && d.more == 1);
    bytes[6] = 2;
    CHECK(!request_decode(bytes, &d));
    f.kind = FRAME_GET;
    request_encode(bytes, &f);
    CHECK(!request_decode(bytes, &d));
}

/* Which records there are, and how many bytes they take. */
static void batches(void)
{
    static const struct {
        struct request_frame f;
        size_t record; /* 0: there are none such */
    } what[] = {
        {{.signal_segment = TRANSPORT_GET, .b = 8}, 4},
        {{.signal_segment = TRANSPORT_GET, .signal_op = RECORDS_EACH, .b = 8}, 0},
        {{.signal_segment = TRANSPORT_GET, .signal_op = RECORDS_FETCH, .amo = GSHMEM_AMO_COMPARE_SWAP, .b = 64}, 4},
        {{.signal_segment = TRANSPORT_PUT, .signal_op = RECORDS_EACH, .b = 8}, 12},
        {{.signal_segment = TRANSPORT_PUT, .signal_op = RECORDS_FETCH, .b = 8}, 0},
        {{.signal_segment = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD, .b = 4}, 8},
        {{.signal_segment = TRANSPORT_ATOMIC, .signal_op = RECORDS_FETCH, .amo = GSHMEM_AMO_SWAP, .b = 8}, 12},
        {{.signal_segment = TRANSPORT_ATOMIC, .signal_op = RECORDS_FETCH, .amo = GSHMEM_AMO_COMPARE_SWAP, .b = 4}, 12},
        {{.signal_segment = TRANSPORT_ATOMIC, .signal_op = RECORDS_FETCH, .amo = GSHMEM_AMO_COMPARE_SWAP, .b = 8}, 20},
        {{.signal_segment = TRANSPORT_ATOMIC, .signal_op = RECORDS_FETCH + 1, .b = 8}, 0},
        {{.signal_segment = TRANSPORT_BATCH, .b = 8}, 0},
    };

    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        const size_t record = what[i].record ? what[i].record : 12;
        for (uint64_t n = 0; n < 4100; n++) {
            struct request_frame f = what[i].f;
            f.a = n;
            f.bytes = n * record;
            CHECK_EQ(frame_batch_is_sound(&f), what[i].record && n >= 1 && n <= BATCH_ELEMENTS_MOST);
            f.bytes++;
            CHECK(!frame_batch_is_sound(&f));
        }
        struct request_frame f = what[i].f;
        f.a = UINT64_C(1) << 62; /* whose bytes come to 0 */
        CHECK(!frame_batch_is_sound(&f));
    }
}

static void answers(void)
{
    struct response_frame a = {RESPONSE_DATA, 0x0102030405060708, 0xf1f2f3f4f5f6f7f8}, d;
    unsigned char bytes[RESPONSE_BYTES];

    response_encode(bytes, &a);
    CHECK(memcmp(bytes, "\21\0\0\0\0\0\0\0" "\10\7\6\5\4\3\2\1" "\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1",
                 RESPONSE_BYTES) == 0);
    CHECK(response_decode(bytes, &d));
    CHECK(d.kind == a.kind && d.number == a.number && d.value == a.value);
    for (int kind = 0; kind < 256; kind++) {
        bytes[0] = (unsigned char)kind;
        CHECK_EQ(response_decode(bytes, &d), kind >= RESPONSE_DONE && kind <= RESPONSE_FETCHED);
    }
    for (int at = 1; at < 8; at++) {
        response_encode(bytes, &a);
        bytes[at] = 128;
        CHECK(!response_decode(bytes, &d));
    }
}

int main(void)
{
    hellos();
    requests();
    batches();
    answers();
    return 0;
}
