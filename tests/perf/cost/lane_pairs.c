#include "lane_pairs.h"

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

static gshmem_status_t progress(struct transport *t, int *events)
{
    for (int i = 0; i < lanes; i++) {
        if (pe[own(i)].t == t)
            run_nic(i);
    }
    return gshmem_transport.progress(t, events);
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
