/* The tables from which a collective gets its way to meet and its algorithm: the first row that
 * fits is taken.
 *
 * Rows look at nothing that could differ between members: the size of the data is compared when
 * they meet, and they all see the same host. Measured with 2 CPUs (EPYC, 2.6 GHz), medians in µs;
 * limits are in bytes that one member brings. */
#include "runtime/collectives/table.h"

#include <assert.h>
#include <stdint.h>

#define ANY SIZE_MAX
enum { PAIRED_BYTES = 48 * 1024 };
enum crowding { ALONE, CROWDED, EITHER }; /* whether each member has a CPU for itself */

static bool fits(enum crowding row, bool crowded)
{
    return row == EITHER || (row == CROWDED) == crowded;
}

/* Flat: 0.08 with 2 members. Crowded, what counts is to switch as little as possible between
 * members: 1.5 with 4, 4.4 with 8, of which a switch takes 1.2. Beyond 8 lines to read,
 * dissemination reads fewer (by count: there were no more than 2 CPUs to measure it with). */
static const struct {
    enum crowding crowding;
    size_t members;
    meeting_fn *meet;
} meetings[] = {
    {CROWDED, ANY, meet_hub},
    {ALONE, 8, meet_flat},
    {ALONE, ANY, meet_dissemination},
};

/* Noted collectives take one round, shared ones two.
 *
 * Alone, a round costs 0.07, and the notes cost one more copy: noted and shared meet where that
 * copy takes as long as the round:
 *     2 members           256          1024          2048          3040
 *     broadcast       .09  .16     .11  .16      .14  .17      .22  .18
 *     fcollect        .10  .16     .16  .18      .20  .18      .34  .20
 *     alltoall        .10  .15     .12  .16      .17  .17      .24  .18
 *     reduce          .12  .17     .18  .18      .24  .20      .39  .20
 *     reducescatter   .11  .15     .14  .17      .17  .19      .23  .19
 *     inscan          .09  .17     .13  .19      .17  .20      .28  .23
 * On a Xeon, where a line takes 0.08 and a round 0.15, a note's lines, which another CPU has read,
 * cost more than the round from 512 B on:
 *                         256           512          1024          2048
 *     fcollect        .34  .38     .50  .51      .68  .54
 *     alltoall        .31  .35     .35  .38      .50  .42      .69  .43
 *     reduce          .36  .46     .52  .47      .65  .52
 * Noted reductions and scans combine all data on every member, shared ones a part on each: with
 * more members the limit is lower in proportion.
 *
 * Crowded, a round costs microseconds, and nearly all that fits into a note goes there:
 *     reduce, 4 members  2.1  3.5     2.1  3.5     2.5  3.5     2.9  3.7
 *     reduce, 8 members  7.6  10.9    6.8  11.0    8.2  14.6    9.0  12.2
 * On the Xeon a broadcast of 4 KiB by note takes 3.0 for 4.0, with 8 members 9.1 for 12.9; fcollect
 * and reduce, of which all members' notes are read, take as long or longer with 4 KiB as in two
 * rounds.
 *
 * An alltoall in pairs takes one round, too, but gives the last to come more work than its share, in
 * other CPUs' caches. Paired and shared, by bytes of one block:
 *                             1 KiB         4 KiB        16 KiB        64 KiB
 *     alltoall, 4 members  3.2   5.0     4.0   5.6     6.8   6.7    17.1  11.2
 *     alltoall, 8 members  8.8  12.8    10.7  13.5    22.5  20.9    58.1  50.5
 * By note blocks of 1 KiB take 4.0 for 4.5 of the pairs with 4 members on the Xeon, and 14.9 for 12.7
 * with 8. */
static const struct row {
    enum crowding crowding;
    size_t bytes;
    size_t members;
    algorithm_fn *run;
} algorithms[COLLECTIVE_COUNT][4] = {
    [COLLECTIVE_BROADCAST] = {{CROWDED, NOTE_ROOM, ANY, broadcast_noted},
                              {ALONE, 2048, ANY, broadcast_noted},
                              {EITHER, ANY, ANY, broadcast_shared}},
    [COLLECTIVE_FCOLLECT] = {{CROWDED, NOTE_BYTES, ANY, collect_noted},
                             {ALONE, 512, ANY, collect_noted},
                             {EITHER, ANY, ANY, collect_shared}},
    [COLLECTIVE_ALLTOALL] = {{CROWDED, NOTE_ROOM, ANY, alltoall_noted},
                             {CROWDED, PAIRED_BYTES, 64, alltoall_paired},
                             {ALONE, 512, ANY, alltoall_noted},
                             {EITHER, ANY, ANY, alltoall_shared}},
    [COLLECTIVE_ALLTOALLS] = {{CROWDED, NOTE_BYTES, ANY, alltoalls_noted},
                              {ALONE, 2048, ANY, alltoalls_noted},
                              {EITHER, ANY, ANY, alltoalls_shared}},
    [COLLECTIVE_REDUCE] = {{CROWDED, NOTE_BYTES, ANY, reduce_noted},
                           {ALONE, 256, ANY, reduce_noted},
                           {EITHER, ANY, ANY, reduce_shared}},
    [COLLECTIVE_REDUCESCATTER] = {{CROWDED, NOTE_BYTES, ANY, reducescatter_noted},
                                  {ALONE, 2048, ANY, reducescatter_noted},
                                  {EITHER, ANY, ANY, reducescatter_shared}},
    [COLLECTIVE_INSCAN] = {{CROWDED, NOTE_BYTES, ANY, inscan_noted},
                           {ALONE, 2048, 2, inscan_noted},
                           {ALONE, 512, ANY, inscan_noted},
                           {EITHER, ANY, ANY, inscan_shared}},
    [COLLECTIVE_EXSCAN] = {{CROWDED, NOTE_BYTES, ANY, exscan_noted},
                           {ALONE, 2048, 2, exscan_noted},
                           {ALONE, 512, ANY, exscan_noted},
                           {EITHER, ANY, ANY, exscan_shared}},
};
static_assert(NOTE_BYTES >= 2048, "what the rows send by note fits into one");

meeting_fn *table_meeting(int n, bool crowded)
{
    size_t i = 0;

    while (!fits(meetings[i].crowding, crowded) || meetings[i].members < (size_t)n)
        i++;
    return meetings[i].meet;
}

algorithm_fn *table_algorithm(enum collective what, size_t bytes, int n, bool crowded)
{
    const struct row *row = algorithms[what];

    while (row->bytes < bytes || row->members < (size_t)n || !fits(row->crowding, crowded))
        row++;
    return row->run;
}

/* Between hosts a round takes the network's time whatever it carries: all that fits goes by note. */
static algorithm_fn *const far_algorithms[COLLECTIVE_COUNT][2] = {
    [COLLECTIVE_BROADCAST] = {broadcast_far, broadcast_far},
    [COLLECTIVE_FCOLLECT] = {fcollect_far, fcollect_far},
    [COLLECTIVE_ALLTOALL] = {alltoall_far, alltoall_far},
    [COLLECTIVE_ALLTOALLS] = {alltoalls_noted, alltoalls_far},
    [COLLECTIVE_REDUCE] = {reduce_far, reduce_far},
    [COLLECTIVE_REDUCESCATTER] = {reducescatter_noted, reducescatter_far},
    [COLLECTIVE_INSCAN] = {inscan_noted, inscan_far},
    [COLLECTIVE_EXSCAN] = {exscan_noted, exscan_far},
};

algorithm_fn *table_far_algorithm(enum collective what, size_t bytes)
{
    return far_algorithms[what][bytes > NOTE_BYTES];
}
