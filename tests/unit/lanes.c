/* What a PE publishes of its lanes: the addresses that other PEs find in it. */
#include "../check.h"
#include "runtime/network/lanes.h"

enum { MOST = 400 };

static unsigned random_state = 1;

static unsigned below(unsigned n)
{
    random_state = random_state * 1103515245u + 12345u;
    return (random_state >> 16) % n;
}

/* An address that differs from the first one in some bytes, and perhaps in length. */
static size_t other(const unsigned char *first, size_t bytes, unsigned char *out)
{
    const size_t from = below((unsigned)bytes + 1), n = below(6), more = below(3);
    const size_t skip = from + n < bytes ? n : bytes - from;

    memcpy(out, first, from);
    for (size_t i = 0; i < n + more; i++)
        out[from + i] = (unsigned char)below(256);
    memcpy(out + from + n + more, first + from + skip, bytes - from - skip);
    return bytes - skip + n + more;
}

static void test_round_trip(void)
{
    unsigned char first[MOST], address[LANES_MOST][MOST], published[MOST], got[MOST];
    size_t bytes[LANES_MOST], n, end = 0;

    for (int round = 0; round < 20000; round++) {
        n = below(160);
        for (size_t i = 0; i < n; i++)
            first[i] = (unsigned char)below(4);
        end = 0;
        for (int lane = 1; lane < LANES_MOST; lane++) {
            bytes[lane] = other(first, n, address[lane]);
            const size_t more = lanes_encode(first, n, address[lane], bytes[lane], published + end,
                                             sizeof published - end);
            CHECK(more >= 3);
            end += more;
        }
        for (int lane = 1; lane < LANES_MOST; lane++) {
            CHECK_EQ(lanes_decode(first, n, published, end, lane, got, sizeof got), bytes[lane]);
            CHECK(memcmp(got, address[lane], bytes[lane]) == 0);
        }
        CHECK_EQ(lanes_decode(first, n, published, end, LANES_MOST, got, sizeof got), 0);
    }
}

/* The port alone differs: a few bytes a lane, so that all lanes fit beside a long address. */
static void test_small(void)
{
    unsigned char first[100] = {1, 6, 200, 1}, second[100] = {1, 6, 200, 9}, published[8], got[100];

    CHECK_EQ(lanes_encode(first, 100, second, 100, published, 4), 4);
    CHECK_EQ(lanes_encode(first, 100, second, 100, published, 3), 0);
    CHECK_EQ(lanes_decode(first, 100, published, 4, 1, got, 100), 100);
    CHECK(memcmp(got, second, 100) == 0);
    CHECK_EQ(lanes_decode(first, 100, published, 4, 1, got, 99), 0);
}

/* Bytes of another version, or of nobody, name no memory outside of what is given. */
static void test_damaged(void)
{
    unsigned char first[40] = {0}, published[12], got[64];

    for (int round = 0; round < 20000; round++) {
        const size_t n = below(sizeof published + 1);
        for (size_t i = 0; i < n; i++)
            published[i] = (unsigned char)below(round % 2 ? 256 : 12);
        CHECK(lanes_decode(first, sizeof first, published, n, 1 + (int)below(3), got,
                           sizeof got) <= sizeof got);
    }
    CHECK_EQ(lanes_decode(first, sizeof first, published, 0, 1, got, sizeof got), 0);
}

/* A limit of a NIC holds for all lanes together. */
static void test_share(void)
{
    CHECK_EQ(lanes_share("IB_INFLIGHT", 0, 4), 0);
    CHECK_EQ(lanes_share("IB_INFLIGHT", 1 << 20, 1), 1 << 20);
    CHECK_EQ(lanes_share("IB_INFLIGHT", 1 << 20, 4), 1 << 18);
    CHECK_EQ(lanes_share("IB_INFLIGHT", 3, 4), 1);
    CHECK_EQ(lanes_share("IB_INFLIGHT_REQUESTS", 64, 2), 32);
    CHECK_EQ(lanes_share("IB_SL", 7, 2), 7);
}

int main(void)
{
    test_share();
    test_round_trip();
    test_small();
    test_damaged();
    return 0;
}
