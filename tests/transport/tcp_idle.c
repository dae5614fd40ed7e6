/* A stream through which nothing passes keeps one page on either side, and works as before. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "transport/tcp/initiator.h"
#include "transport/tcp/target.h"

enum { PUT_BYTES = 4096, PUTS = 64, LARGE = 1 << 20 };

/* Pages of that record that are in memory. Those of zeros are not counted: a page that was given back and has been read
 * since is the system's page of zeros, which takes no memory. Buffers that are kept have what has passed. */
static int resident(const void *record, size_t bytes)
{
    static const char zeros[1 << 16];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char in_memory[256];
    int n = 0;

    CHECK(record && (bytes + page - 1) / page <= sizeof in_memory && page <= sizeof zeros);
    CHECK_EQ(mincore((void *)(uintptr_t)record, bytes, in_memory), 0);
    for (size_t i = 0; i < (bytes + page - 1) / page; i++)
        n += (in_memory[i] & 1) && memcmp((const char *)record + i * page, zeros, page) != 0;
    return n;
}

static int pages_of(int which)
{
    const struct tcp *t = (struct tcp *)pe[which].t;

    return resident(t->to[1 - which], sizeof(struct initiator)) +
           resident(t->from[1 - which], sizeof(struct target));
}

/* Puts that are copied, and one that is not, a get and an update, both ways; all must be right. */
static void talk(unsigned char token)
{
    static unsigned char small[PUT_BYTES], large[LARGE], back[PUT_BYTES];

    memset(small, token, sizeof small);
    memset(large, token + 1, sizeof large);
    for (int from = 0; from < 2; from++) {
        for (uint64_t i = 0; i < PUTS; i++)
            post(from, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 1 - from, .offset = i * PUT_BYTES,
                                                  .local = small, .bytes = sizeof small});
        post(from, (struct transport_request){.kind = TRANSPORT_PUT, .pe = 1 - from, .offset = LARGE, .local = large,
                                              .bytes = sizeof large});
        post(from, (struct transport_request){.kind = TRANSPORT_GET, .pe = 1 - from, .offset = PUT_BYTES, .local = back,
                                              .bytes = sizeof back});
        settle();
        CHECK_EQ(not_ok, 0);
        CHECK(!memcmp(back, small, sizeof back));
        CHECK(!memcmp(segment_of(1 - from), small, sizeof small));
        CHECK(!memcmp(segment_of(1 - from) + LARGE, large, sizeof large));
    }
}

/* Until a few ticks have passed, of which a busy machine may make fewer than the clock: each stream has a page on either
 * side. A page too many is there for ever. */
static void stay_idle(void)
{
    while (pages_of(0) + pages_of(1) > 4) {
        drive();
        usleep(1000);
    }
}

int main(void)
{
    setenv("GSHMEM_PEER_TIMEOUT", "3", 1); /* three ticks a second */
    begin();
    for (unsigned char round = 0; round < 3; round++) {
        talk((unsigned char)(3 * round + 1));
        for (int which = 0; which < 2; which++)
            CHECK(pages_of(which) > 8);
        stay_idle();
        for (int which = 0; which < 2; which++)
            CHECK_EQ(pages_of(which), 2);
    }
    close_pe(0);
    close_pe(1);
    return 0;
}
