/* A job of one PE that is made to believe in others, on other nodes: for each lane one, over the NIC
 * of the transport's tests (lane_pairs.h). A lane's proxy is also what drives its NIC and the other
 * PE's transport. So lanes share what they share over real NICs, which is the runtime, and nothing
 * else. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "../prefilled.h"
#include "../../check.h"
#include "lane_pairs.h"
#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/parts.h"
#include "runtime/node/node.h"
#include "runtime/proxy/kernels.h"
#include "runtime/proxy/parts.h"

enum { PES_MOST = 2 * LANE_PAIRS_MOST };
static_assert((int)LANE_PAIRS_MOST >= (int)LANES_MOST, "a pair for each lane");

void target_open(void)
{
    CHECK_EQ(setenv("GSHMEM_IB_HCA_BY_PE", "fake0:1:1,fake1:1:1,fake2:1:1,fake3:1:1", 1), 0);
}

/* With the lane's lock: from now on it has PEs of other nodes. */
static void enter(struct network *n, int lane, int n_pes)
{
    static int index_of[PES_MOST] = {0, -1, -1, -1, -1, -1, -1, -1};
    static _Atomic bool lost[PES_MOST], refused[PES_MOST];
    static bool notified[PES_MOST];
    static struct stats_peer peers[LANES_MOST][PES_MOST + 1];

    job->n_pes = n_pes;
    job->node->index_of = index_of;
    job->node->lost = n->lost = lost;
    n->refused = refused;
    n->notified = notified;
    n->counts->peer = peers[lane];
    job->kernels->service[lane].way.n_pes = n_pes;
    n->remote = lane_pair(lane);
    /* The program's thread needs no CPU meanwhile: a proxy has one, and does not yield. */
    n->proxy.pace.oversubscribed = false;
    job->node->cpus = (1 + job->network->lanes) * job->node->sharers; /* what it looks at again */
}

void target_begin(void)
{
    const int lanes = job->network->lanes;

    lane_pairs_open(lanes, SEGMENT_HEAP);
    for (int i = 0; i < lanes; i++)
        mutex_take(&job->network->lane[i]->lock);
    for (int i = 0; i < lanes; i++)
        enter(job->network->lane[i], i, 2 * lanes);
    for (int i = 0; i < lanes; i++)
        mutex_give(&job->network->lane[i]->lock);
}

int target_of(const struct gshmem_device_channel *c)
{
    int lane = 0;

    while (job->kernels->service[lane].asleep != c->asleep)
        lane++;
    return 2 * lane + 1;
}

const char *target_memory(int pe, uintptr_t address)
{
    return lane_pairs_memory(pe, address - job->map->segment[SEGMENT_HEAP].base);
}

double target_cpu_seconds(void)
{
    return 1e-9 * (double)lane_pairs_cpu_ns();
}

void target_end(void)
{
    fflush(NULL);
    _exit(0); /* a job that has been told such things cannot be finalized */
}
