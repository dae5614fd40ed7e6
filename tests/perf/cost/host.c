/* A small put of the host's, or an update, and the quiet behind it, from the call to its return: the
 * runtime's part and the transport's, over the fake of libibverbs that the unit tests have. The job is one of
 * one PE that is made to believe in a second one, on another host. For tests/perf/instructions,
 * which counts within `measured`. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "pair.h"
#include "runtime/base/biased_lock.h"
#include "runtime/teams/context.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"
#include "runtime/teams/team.h"

enum { STRIDE = 256, BATCH_MOST = 4096 }; /* puts that are no neighbours */

static uint64_t value = 7;
static bool adds;
static char *heap;

void measured(int batch);

__attribute__((noinline)) void measured(int batch)
{
    for (int i = 1; i <= batch && !adds; i++)
        gshmem_putmem_nbi(heap + i * STRIDE, &value, sizeof value, 1);
    for (int i = 1; i <= batch && adds; i++)
        gshmem_uint64_atomic_add((uint64_t *)(void *)(heap + i * STRIDE), value, 1);
    gshmem_quiet();
}

static void add_pe(struct transport *far)
{
    static int members[] = {0, 1}, index_of[] = {0, -1};
    static uintptr_t peer[2];
    static _Atomic bool lost[2];

    heap = (char *)job->map->segment[SEGMENT_HEAP].base;
    job->n_pes = 2;
    job->team[GSHMEM_TEAM_WORLD]->members = members;
    job->node->index_of = index_of;
    job->node->lost = job->network->lost = lost;
    peer[0] = (uintptr_t)heap;
    gshmem_ctx_default->n_pes = 2;
    gshmem_ctx_default->heap.peer = peer;
    job->network->remote = far;
    job->network->batches_have_owners = network_takes_batches(job->network) && biased_lock_prepare();
    atomic_store(&job->network->proxy.runs, true); /* it is this thread that drives */
}

int main(int argc, char **argv)
{
    const int puts = argc >= 3 ? atoi(argv[1]) : 0, batch = argc >= 3 ? atoi(argv[2]) : 0;

    adds = argc == 4 && strcmp(argv[3], "add") == 0;
    CHECK(puts > 0 && batch > 0 && batch <= BATCH_MOST && puts % batch == 0);
    CHECK_EQ(gshmem_init(), GSHMEM_OK);
    add_pe(pair_open(SEGMENT_HEAP));
    gshmem_putmem_nbi(heap, &value, sizeof value, 1);
    pair_settle(); /* the key is known from here on */
    for (int done = 0; done < puts; done += batch)
        measured(batch);
    CHECK_EQ(pair_word(0), value);
    CHECK_EQ(pair_word((uint64_t)batch * STRIDE), adds ? (uint64_t)(puts / batch) * value : value);
    _exit(0); /* a job that has been told such things cannot be finalized */
}
