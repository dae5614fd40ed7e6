/* The table from which a collective gets its algorithm: the first row that fits is taken.
 *
 * A column says up to which value a row applies; ANY: always. Measurements: 2 CPUs (EPYC, 2.6 GHz),
 * medians. Rows look at nothing that could differ between members: the size of the data is compared
 * when they meet, and they all see the same host. */
#include "runtime/collectives/table.h"

#include <stdint.h>

#define ANY SIZE_MAX

static const struct {
    int crowded; /* -1: either */
    size_t members;
    meeting_fn *meet;
} meetings[] = {
    {1, ANY, meet_hub},
    {0, 8, meet_flat},
    {0, ANY, meet_dissemination},
};

static const struct row {
    size_t bytes;   /* that one member brings */
    size_t members; /* in the group */
    algorithm_fn *run;
} algorithms[COLLECTIVE_COUNT][2] = {
    [COLLECTIVE_BROADCAST] = {{2048, ANY, broadcast_noted}, {ANY, ANY, broadcast_shared}},
    [COLLECTIVE_COLLECT] = {{ANY, ANY, collect_sized}},
    [COLLECTIVE_FCOLLECT] = {{2048, ANY, collect_noted}, {ANY, ANY, collect_shared}},
    [COLLECTIVE_ALLTOALL] = {{2048, ANY, alltoall_noted}, {ANY, ANY, alltoall_shared}},
    [COLLECTIVE_ALLTOALLS] = {{2048, ANY, alltoalls_noted}, {ANY, ANY, alltoalls_shared}},
    [COLLECTIVE_REDUCE] = {{2048, ANY, reduce_noted}, {ANY, ANY, reduce_shared}},
    [COLLECTIVE_REDUCESCATTER] = {{2048, ANY, reducescatter_noted}, {ANY, ANY, reducescatter_shared}},
    [COLLECTIVE_INSCAN] = {{2048, ANY, inscan_noted}, {ANY, ANY, inscan_shared}},
    [COLLECTIVE_EXSCAN] = {{2048, ANY, exscan_noted}, {ANY, ANY, exscan_shared}},
};

meeting_fn *table_meeting(int n, bool crowded)
{
    size_t i = 0;

    while ((meetings[i].crowded >= 0 && meetings[i].crowded != crowded) ||
           meetings[i].members < (size_t)n)
        i++;
    return meetings[i].meet;
}

algorithm_fn *table_algorithm(enum collective what, size_t bytes, int n)
{
    const struct row *row = algorithms[what];

    while (row->bytes < bytes || row->members < (size_t)n)
        row++;
    return row->run;
}
