/* A job of one PE that is made to believe in others, on other nodes: for each lane two transports
 * over verbs on the fake of libibverbs, of which one is the lane's and the other is the PE that it
 * puts to. Each lane has a NIC of its own, with a lock of its own; the lane's proxy is also what
 * drives the NIC and the other transport. So lanes share what they share over real NICs, which is
 * the runtime, and nothing else. */
#include <stdlib.h>
#include <unistd.h>

#include "../../transport/verbs/pes.h"
#include "../prefilled.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/parts.h"
#include "runtime/node/node.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"
#include "transport/verbs/resolve.h"

static struct transport_ops ops;
static int lanes;

/* PE 2i is lane i of this PE, for its transport, and puts to PE 2i + 1. */
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

/* Both transports of a lane have met. */
static void meet(int lane)
{
    enum { ROUNDS = 1000 };
    static uint64_t value = 1;
    struct transport_request r = put(&value, 0, sizeof value);
    gshmem_status_t status;
    int rounds = 0;

    r.segment = SEGMENT_HEAP;
    while ((status = try_post_to(own(lane), own(lane) + 1, r)) == TRANSPORT_FULL && rounds++ < ROUNDS)
        drive_all();
    CHECK_EQ(status, GSHMEM_OK);
    while (ok < posted && rounds++ < ROUNDS)
        drive_all();
    CHECK_EQ(ok, posted);
    for (int i = 0; i < 100; i++)
        drive_all();
}

static void open_transports(void)
{
    prepare(1);
    fake.devices = lanes;
    job_pes = 2 * lanes;
    for (int i = 0; i < 2 * lanes; i++) {
        turns[i] = i / 2; /* GSHMEM_IB_HCA_BY_PE */
        open_pe(i, false);
        pe[i].config.segment[SEGMENT_HEAP] = pe[i].config.segment[0];
        pe[i].config.segments = SEGMENT_HEAP + 1;
        gshmem_transport.begin(pe[i].t, &pe[i].config);
    }
    for (int i = 0; i < lanes; i++)
        meet(i);
    fake.apart = true;
}

/* With the lane's lock: from now on it has PEs of other nodes. */
static void enter(struct network *n, int lane)
{
    static int index_of[PES_MOST] = {0, -1, -1, -1, -1, -1, -1, -1};
    static _Atomic bool lost[PES_MOST], refused[PES_MOST];
    static bool notified[PES_MOST];
    static struct stats_peer peers[LANES_MOST][PES_MOST + 1];

    job->n_pes = 2 * lanes;
    job->node->index_of = index_of;
    job->node->lost = n->lost = lost;
    n->refused = refused;
    n->notified = notified;
    n->counts->peer = peers[lane];
    job->kernels->service[lane].way.n_pes = 2 * lanes;
    pe[own(lane)].t->ops = &ops;
    n->remote = pe[own(lane)].t;
}

void target_open(void)
{
    CHECK_EQ(setenv("GSHMEM_IB_HCA_BY_PE", "fake0:1:1,fake1:1:1,fake2:1:1,fake3:1:1", 1), 0);
    CHECK_EQ(setenv("MALLOC_PERTURB_", "0", 1), 0);
}

void target_begin(void)
{
    lanes = job->network->lanes;
    open_transports();
    ops = gshmem_transport;
    ops.progress = progress;
    for (int i = 0; i < lanes; i++)
        mutex_take(&job->network->lane[i]->lock);
    for (int i = 0; i < lanes; i++)
        enter(job->network->lane[i], i);
    for (int i = 0; i < lanes; i++)
        mutex_give(&job->network->lane[i]->lock);
}

int target_of(const struct gshmem_device_channel *c)
{
    int lane = 0;

    while (job->kernels->service[lane].asleep != c->asleep)
        lane++;
    return own(lane) + 1;
}

const char *target_memory(int which, uintptr_t address)
{
    return pe[which].memory + (address - job->map->segment[SEGMENT_HEAP].base);
}

void target_end(void)
{
    fflush(NULL);
    _exit(0); /* a job that has been told such things cannot be finalized */
}
