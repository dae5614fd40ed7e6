/* What operations cost on the wire, counted by the devices: how many packets each of the two sends
 * for one operation and its quiet. A put with a signal is one more than a put, and its owner
 * answers with no packet but the NIC's acknowledgements: there is nothing that anybody could wait
 * for in between. Many small puts share packets.
 *
 * For two PEs on two hosts with a device each. What is counted is the least over many tries:
 * packets that are sent again only add to it. */
#include <fcntl.h>
#include <stdbool.h>

#include "../pe/pe.h"

enum { TRIES = 15, STALE_US = 30000, PUTS = 64, LOOKS = 200 };

static uint64_t cell, other, signal_, cells[PUTS][2]; /* symmetric */

/* What the kernel says is some milliseconds old, unless nobody has asked for longer than that, by
 * the kernel's ticks. Where ticks are late, as in a machine that is emulated on a busy one, what it
 * says can be older than the last pause. */
static int64_t sent_by(int device)
{
    char path[100], text[32] = "";

    snprintf(path, sizeof path, "/sys/class/infiniband/rdma%d/ports/1/hw_counters/sent_pkts",
             device);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        SKIP("there are not two RDMA devices that count packets");
    CHECK(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atoll(text);
}

static gshmem_status_t put(void)
{
    uint64_t value = 1;

    return gshmem_putmem_nbi(&cell, &value, 8, 1);
}

static gshmem_status_t put_signal_set(void)
{
    uint64_t value = 1;

    return gshmem_putmem_signal_nbi(&cell, &value, 8, &signal_, 1, GSHMEM_SIGNAL_SET, 1);
}

static gshmem_status_t put_signal_add(void)
{
    uint64_t value = 1;

    return gshmem_putmem_signal_nbi(&cell, &value, 8, &signal_, 1, GSHMEM_SIGNAL_ADD, 1);
}

static gshmem_status_t put_fence_put(void)
{
    gshmem_status_t status = put();

    status = status ? status : gshmem_fence();
    return status ? status : gshmem_uint64_p(&other, 1, 1);
}

static gshmem_status_t get(void)
{
    static uint64_t value;

    return gshmem_getmem_nbi(&value, &cell, 8, 1);
}

static gshmem_status_t add(void)
{
    return gshmem_uint64_atomic_add(&cell, 1, 1);
}

static gshmem_status_t many_puts(void)
{
    gshmem_status_t status = GSHMEM_OK;

    for (int i = 0; i < PUTS && !status; i++)
        status = gshmem_uint64_p(cells[i], 1, 1);
    return status;
}

static const struct {
    const char *name;
    gshmem_status_t (*issue)(void);
    int64_t more; /* than a put: packets that its PE sends; -1: not looked at */
} operations[] = {{"put", put, 0},
                  {"put_signal (set)", put_signal_set, 1},
                  {"put, fence, put", put_fence_put, 1},
                  {"put_signal (added)", put_signal_add, -1},
                  {"get", get, -1},
                  {"atomic add", add, -1},
                  {"64 puts of 8 B", many_puts, -1}};

/* What a device has sent since it was at BEFORE. Each device sends for each operation (at least the
 * acknowledgement), so that nothing sent means that what the kernel says is of before. */
static int64_t sent_since(int64_t before, int device)
{
    int64_t sent = 0;

    for (int look = 0; look < LOOKS && sent == 0; look++) {
        usleep(STALE_US);
        sent = sent_by(device) - before;
    }
    return sent;
}

/* The fewest packets that either device sends. */
static void count(gshmem_status_t (*issue)(void), int64_t least[2])
{
    for (int i = 0; i < TRIES; i++) {
        usleep(STALE_US);
        int64_t before[2] = {sent_by(0), sent_by(1)};
        CHECK_OK(issue());
        CHECK_OK(gshmem_quiet());
        for (int device = 0; device < 2; device++) {
            int64_t sent = sent_since(before[device], device);
            if (i == 0 || sent < least[device])
                least[device] = sent;
        }
    }
}

int main(void)
{
    int64_t put_costs = 0, least[2];

    begin();
    CHECK_EQ(n, 2);
    barrier();
    for (size_t i = 0; me == 0 && i < sizeof operations / sizeof operations[0]; i++) {
        count(operations[i].issue, least);
        if (i == 0)
            put_costs = least[0];
        printf("%-20s %lld packets to the other host, %lld back\n", operations[i].name,
               (long long)least[0], (long long)least[1]);
        fflush(stdout);
        CHECK(least[0] > 0 && least[1] > 0);
        CHECK(operations[i].issue != many_puts || least[0] + least[1] < PUTS);
        if (operations[i].more >= 0) {
            CHECK_EQ(least[0] - put_costs, operations[i].more);
            CHECK(least[1] <= least[0]); /* acknowledgements */
        }
    }
    end();
    return 0;
}
