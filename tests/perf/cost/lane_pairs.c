#define _GNU_SOURCE
#include "lane_pairs.h"

#include <stdatomic.h>
#include <time.h>

#include "transport/optional.h"
#include "../../transport/verbs/pes.h"
#include "transport/verbs/resolve.h"

static struct transport_ops ops;
static int lanes;

static int own(int lane)
{
    return 2 * lane;
}

static void run_nic(int lane)
{
    int events;

    while (fake_run_nic(lane))
        ;
    CHECK_EQ(gshmem_transport.progress(pe[own(lane) + 1].t, &events), GSHMEM_OK);
    while (fake_run_nic(lane))
        ;
}

static struct {
    _Alignas(64) uint64_t read; /* by its thread, at the end of the last round */
    _Atomic uint64_t used;
} cpu[LANE_PAIRS_MOST];

/* A round takes commands first, which it posts, and then makes progress. */
static void count_round(int lane, bool worked)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    const uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    if (worked)
        atomic_fetch_add_explicit(&cpu[lane].used, now - cpu[lane].read, memory_order_relaxed);
    cpu[lane].read = now;
}

uint64_t lane_pairs_cpu_ns(void)
{
    uint64_t all = 0;

    for (int i = 0; i < lanes; i++)
        all += atomic_load_explicit(&cpu[i].used, memory_order_relaxed);
    return all;
}

static gshmem_status_t progress(struct transport *t, int *events)
{
    int lane = 0;

    while (pe[own(lane)].t != t)
        lane++;
    const bool busy = transport_busy(t);
    run_nic(lane);
    const gshmem_status_t status = gshmem_transport.progress(t, events);
    count_round(lane, busy || *events);
    return status;
}

static void drive_all(void)
{
    int events;

    while (fake_run())
        ;
    for (int i = 0; i < 2 * lanes; i++) {
        carry_notes(i);
        CHECK_EQ(gshmem_transport.progress(pe[i].t, &events), GSHMEM_OK);
        resolve_wait((struct verbs *)pe[i].t);
    }
}

/* Both transports of a lane have met, and the lane knows the key. */
static void meet(int lane, int segment)
{
    enum { ROUNDS = 1000 };
    static uint64_t value = 1;
    struct transport_request r = put(&value, 0, sizeof value);
    gshmem_status_t status;
    int rounds = 0;

    r.segment = (uint8_t)segment;
    while ((status = try_post_to(own(lane), own(lane) + 1, r)) == TRANSPORT_FULL && rounds++ < ROUNDS)
        drive_all();
    CHECK_EQ(status, GSHMEM_OK);
    while (ok < posted && rounds++ < ROUNDS)
        drive_all();
    CHECK_EQ(ok, posted);
    for (int i = 0; i < 100; i++)
        drive_all();
}

void lane_pairs_open(int n, int segment)
{
    lanes = n;
    CHECK(2 * n <= PES_MOST);
    CHECK_EQ(setenv("MALLOC_PERTURB_", "0", 1), 0);
    prepare(1);
    fake.devices = lanes;
    job_pes = 2 * lanes;
    for (int i = 0; i < 2 * lanes; i++) {
        turns[i] = i / 2; /* GSHMEM_IB_HCA_BY_PE */
        open_pe(i, false);
        pe[i].config.segment[segment] = pe[i].config.segment[0];
        pe[i].config.segments = segment + 1;
        gshmem_transport.begin(pe[i].t, &pe[i].config);
    }
    ops = gshmem_transport;
    ops.progress = progress;
    for (int i = 0; i < lanes; i++)
        meet(i, segment);
    fake.apart = true;
    for (int i = 0; i < lanes; i++)
        pe[own(i)].t->ops = &ops;
}

struct transport *lane_pair(int lane)
{
    return pe[own(lane)].t;
}

const char *lane_pairs_memory(int which, uint64_t offset)
{
    return pe[which].memory + offset;
}
