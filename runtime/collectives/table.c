/* The tables that choose which algorithm a collective uses: the first row that fits is taken.
 *
 * Rows depend on nothing that could differ between members: members compare the size of the data in
 * a round, and all see the same node. Limits are in bytes of one member's data; the measurements
 * behind each are in docs/decisions/0006. */
#include "runtime/collectives/table.h"

#include <assert.h>
#include <stdint.h>

#define ANY SIZE_MAX
enum crowding { ALONE, OVERSUBSCRIBED, EITHER }; /* whether each member has a CPU of its own */

static bool table_fits(enum crowding row, bool oversubscribed)
{
    return row == EITHER || (row == OVERSUBSCRIBED) == oversubscribed;
}

/* Noted collectives (data in slots) take one round, shared ones two. Where each member has a CPU,
 * the limit between them is where the additional copy into a slot takes as long as a round. Noted
 * reductions and scans combine all data on every member, shared ones a part on each: with more
 * members the limit is lower in proportion. Where members share CPUs, a round costs microseconds,
 * and nearly all data that fits into a slot goes there, except in collectives that read all
 * members' slots. */
static const struct row {
    enum crowding crowding;
    size_t bytes;
    size_t members;
    algorithm_fn *run;
} algorithms[COLLECTIVE_COUNT][5] = {
    [COLLECTIVE_BROADCAST] = {{EITHER, ROOTED_BYTES, ANY, broadcast_rooted},
                              {OVERSUBSCRIBED, NOTE_ROOM, ANY, broadcast_noted},
                              {ALONE, 2048, ANY, broadcast_noted},
                              {EITHER, ANY, ANY, broadcast_shared}},
    [COLLECTIVE_FCOLLECT] = {{OVERSUBSCRIBED, NOTE_BYTES, ANY, collect_noted},
                             {ALONE, 512, ANY, collect_noted},
                             {EITHER, ANY, ANY, collect_shared}},
    [COLLECTIVE_ALLTOALL] = {{OVERSUBSCRIBED, 1024, ANY, alltoall_noted},
                             {OVERSUBSCRIBED, ANY, 4, alltoall_shared},
                             {OVERSUBSCRIBED, 4096, ANY, alltoall_noted},
                             {ALONE, 512, ANY, alltoall_noted},
                             {EITHER, ANY, ANY, alltoall_shared}},
    [COLLECTIVE_ALLTOALLS] = {{OVERSUBSCRIBED, NOTE_BYTES, ANY, alltoalls_noted},
                              {ALONE, 2048, ANY, alltoalls_noted},
                              {EITHER, ANY, ANY, alltoalls_shared}},
    [COLLECTIVE_REDUCE] = {{OVERSUBSCRIBED, NOTE_BYTES, ANY, reduce_noted},
                           {ALONE, 256, ANY, reduce_noted},
                           {EITHER, ANY, ANY, reduce_shared}},
    [COLLECTIVE_REDUCESCATTER] = {{OVERSUBSCRIBED, NOTE_BYTES, ANY, reducescatter_noted},
                                  {ALONE, 2048, ANY, reducescatter_noted},
                                  {EITHER, ANY, ANY, reducescatter_shared}},
    [COLLECTIVE_INSCAN] = {{OVERSUBSCRIBED, NOTE_BYTES, ANY, inscan_noted},
                           {ALONE, 2048, 2, inscan_noted},
                           {ALONE, 512, ANY, inscan_noted},
                           {EITHER, ANY, ANY, inscan_shared}},
    [COLLECTIVE_EXSCAN] = {{OVERSUBSCRIBED, NOTE_BYTES, ANY, exscan_noted},
                           {ALONE, 2048, 2, exscan_noted},
                           {ALONE, 512, ANY, exscan_noted},
                           {EITHER, ANY, ANY, exscan_shared}},
};
static_assert(NOTE_BYTES >= 2048, "what the rows send by note fits into one");

algorithm_fn *table_algorithm(enum collective what, size_t bytes, int n, bool oversubscribed)
{
    const struct row *row = algorithms[what];

    while (row->bytes < bytes || row->members < (size_t)n ||
           !table_fits(row->crowding, oversubscribed))
        row++;
    return row->run;
}

/* Between nodes a round takes the network's time whatever it carries: all data that fits goes by
 * slot. */
static algorithm_fn *const internode_algorithms[COLLECTIVE_COUNT][2] = {
    [COLLECTIVE_BROADCAST] = {internode_broadcast, internode_broadcast},
    [COLLECTIVE_FCOLLECT] = {internode_fcollect, internode_fcollect},
    [COLLECTIVE_ALLTOALL] = {internode_alltoall, internode_alltoall},
    [COLLECTIVE_ALLTOALLS] = {alltoalls_noted, internode_alltoalls},
    [COLLECTIVE_REDUCE] = {internode_reduce, internode_reduce},
    [COLLECTIVE_REDUCESCATTER] = {reducescatter_noted, internode_reducescatter},
    [COLLECTIVE_INSCAN] = {inscan_noted, internode_inscan},
    [COLLECTIVE_EXSCAN] = {exscan_noted, internode_exscan},
};

algorithm_fn *table_internode_algorithm(enum collective what, size_t bytes)
{
    return internode_algorithms[what][bytes > NOTE_BYTES];
}
