/* The wire: every message comes out as it went in, and nothing else is taken for one. */
#include "bootstrap/run/wire.h"

#include "check.h"

static unsigned char message[WIRE_MAX + 64];
static unsigned char blob[BOOTSTRAP_BLOB_MAX + 1];

/* That a decoder refuses every length but those from least to most. */
#define CHECK_LENGTHS(least, most, decoded)                                                        \
    for (size_t bytes = 0; bytes <= WIRE_MAX + 8; bytes++) {                                       \
        bool taken = (decoded);                                                                    \
        if (taken != (bytes >= (size_t)(least) && bytes <= (size_t)(most)))                        \
            CHECK_FAIL("%s: %zu bytes were %s", #decoded, bytes, taken ? "taken" : "refused");     \
    }

static void check_hello(void)
{
    struct wire_hello in = {7, 0xfffffffe}, out;

    CHECK_EQ(wire_encode_hello(message, &in), WIRE_HELLO_BYTES);
    CHECK_EQ(memcmp(message, "\1\0\0\0GRUN\7\0\0\0\xfe\xff\xff\xff", 16), 0); /* little-endian */
    CHECK_LENGTHS(16, 16, wire_decode_hello(message, bytes, &out));
    CHECK(wire_decode_hello(message, 16, &out));
    CHECK_EQ(out.version, in.version);
    CHECK_EQ(out.pe, in.pe);
    message[5] ^= 1;
    CHECK(!wire_decode_hello(message, 16, &out)); /* the magic */
}

static void check_welcome(void)
{
    struct wire_welcome in = {1, 0x12345678, 3, 4, 0x89abcdef}, out;

    CHECK_EQ(wire_encode_welcome(message, &in), WIRE_WELCOME_BYTES);
    CHECK_LENGTHS(24, 24, wire_decode_welcome(message, bytes, &out));
    CHECK(wire_decode_welcome(message, WIRE_WELCOME_BYTES, &out));
    CHECK_EQ(memcmp(&in, &out, sizeof in), 0);
}

static void check_publish(uint32_t bytes_of_blob)
{
    struct wire_publish in = {0x01020304, bytes_of_blob, blob}, out;
    size_t n = wire_encode_publish(message, &in);

    CHECK_EQ(n, WIRE_PUBLISH_BYTES + bytes_of_blob);
    CHECK(wire_decode_publish(message, n, &out));
    CHECK_EQ(out.round, in.round);
    CHECK_EQ(out.bytes, in.bytes);
    CHECK_EQ(memcmp(out.blob, blob, bytes_of_blob), 0);
    CHECK_LENGTHS(8, 8 + BOOTSTRAP_BLOB_MAX, wire_decode_publish(message, bytes, &out));
}

static void check_rounds(void)
{
    static const enum wire_type types[] = {WIRE_FENCE, WIRE_WHO, WIRE_RELEASED};

    for (int i = 0; i < 3; i++) {
        struct wire_round in = {0x0a0b0c0d}, out = {0};
        CHECK_EQ(wire_encode_round(message, types[i], &in), WIRE_ROUND_BYTES);
        CHECK_LENGTHS(8, 8, wire_decode_round(message, bytes, types[i], &out));
        CHECK(wire_decode_round(message, 8, types[i], &out));
        CHECK_EQ(out.round, in.round);
        CHECK(!wire_decode_round(message, 8, types[(i + 1) % 3], &out));
    }
}

static void check_absent(void)
{
    struct wire_absent in = {3, 0xffff0001, 0x00ff00ff}, out;

    CHECK_EQ(wire_encode_absent(message, &in), WIRE_ABSENT_BYTES);
    CHECK_LENGTHS(16, 16, wire_decode_absent(message, bytes, &out));
    CHECK(wire_decode_absent(message, WIRE_ABSENT_BYTES, &out));
    CHECK_EQ(memcmp(&in, &out, sizeof in), 0);
}

static void check_fetch(void)
{
    struct wire_fetch in = {0x80000000, 0xffffffff}, out;

    CHECK_EQ(wire_encode_fetch(message, &in), WIRE_FETCH_BYTES);
    CHECK_LENGTHS(12, 12, wire_decode_fetch(message, bytes, &out));
    CHECK(wire_decode_fetch(message, WIRE_FETCH_BYTES, &out));
    CHECK_EQ(memcmp(&in, &out, sizeof in), 0);
}

static void check_blob(uint32_t bytes_of_blob)
{
    struct wire_blob in = {5, 6, bytes_of_blob, blob}, out;
    size_t n = wire_encode_blob(message, &in);

    CHECK_EQ(n, WIRE_BLOB_BYTES + bytes_of_blob);
    CHECK(wire_decode_blob(message, n, &out));
    CHECK_EQ(out.round, in.round);
    CHECK_EQ(out.pe, in.pe);
    CHECK_EQ(out.bytes, in.bytes);
    CHECK_EQ(memcmp(out.blob, blob, bytes_of_blob), 0);
    CHECK_LENGTHS(12, WIRE_MAX, wire_decode_blob(message, bytes, &out));
}

static void check_abort(int status, uint32_t bytes_of_why)
{
    struct wire_abort in = {status, bytes_of_why, (char *)blob}, out;
    size_t n = wire_encode_abort(message, &in);

    CHECK_EQ(n, WIRE_ABORT_BYTES + bytes_of_why);
    CHECK(wire_decode_abort(message, n, &out));
    CHECK_EQ(out.status, status);
    CHECK_EQ(out.bytes, in.bytes);
    CHECK_EQ(memcmp(out.why, blob, bytes_of_why), 0);
    CHECK_LENGTHS(8, 8 + WIRE_WHY_MAX, wire_decode_abort(message, bytes, &out));
}

static void check_goodbye(void)
{
    CHECK_EQ(wire_encode_goodbye(message), WIRE_GOODBYE_BYTES);
    CHECK_LENGTHS(4, 4, wire_decode_goodbye(message, bytes));
}

/* Blocks of PEs, in order, none empty, their sizes different by one at most. */
static void check_hosts(int n_pes, int n_nodes)
{
    int size = 0, small = n_pes, large = 0;

    for (int pe = 0; pe < n_pes; pe++) {
        int host = wire_node_of(pe, n_pes, n_nodes);
        int next = pe + 1 < n_pes ? wire_node_of(pe + 1, n_pes, n_nodes) : n_nodes;
        CHECK(next == host || next == host + 1);
        size++;
        if (next != host) {
            small = size < small ? size : small;
            large = size > large ? size : large;
            size = 0;
        }
    }
    CHECK_EQ(wire_node_of(0, n_pes, n_nodes), 0);
    CHECK(large - small <= 1);
}

int main(void)
{
    for (size_t i = 0; i < sizeof blob; i++)
        blob[i] = (unsigned char)(i * 37 + 1);
    check_hello();
    check_welcome();
    check_rounds();
    check_absent();
    check_fetch();
    check_goodbye();
    for (uint32_t n = 0; n <= BOOTSTRAP_BLOB_MAX; n += 64) {
        check_publish(n);
        check_blob(n);
    }
    check_abort(-1, 0);
    check_abort(300, WIRE_WHY_MAX);
    for (int n_pes = 1; n_pes <= 40; n_pes++) {
        for (int n_nodes = 1; n_nodes <= n_pes; n_nodes++)
            check_hosts(n_pes, n_nodes);
    }
    return 0;
}
