/* How members that share CPUs exchange blocks in one round (runtime/teams/group.c, group_announce;
 * shared_copy.c, alltoall_paired): each adds itself to a set and sees who was in it before; for those it
 * copies, both ways; then it meets the others at the hub, where the last one empties the set.
 *
 * Holds: a member's memory is touched only while it is in that very round, and when it leaves, all pairs
 * that it belongs to have been served once.
 *
 * Mutants: TWO_STEPS: looking at the set and entering it are two steps.
 *          LATE_CLEAR: the set is emptied after the generation has changed.
 *          EARLY_ARRIVAL: a member arrives at the hub before it copies. */
#define N 3
#define ROUNDS 3
#define BIT(i) (1 << (i))
#define PAIR(i, j) ((i) + (j)) /* 1, 2, 3 for two of 0, 1, 2 */

byte announced, arrivals, generation;
byte in[N];                   /* the round in which others may touch a member's memory */
byte served[(ROUNDS + 1) * 4]; /* by round and pair */

inline serve()
{
    i = 0;
    do
    :: i < N ->
        if
        :: before & BIT(i) ->
            assert(in[i] == round);
            served[round * 4 + PAIR(_pid, i)]++
        :: else
        fi;
        i++
    :: else -> break
    od
}

inline arrive()
{
    d_step { arrivals++; last = (arrivals == N) }
}

active [N] proctype member()
{
    byte round = 1, before, i;
    bool last;

    do
    :: round <= ROUNDS ->
        in[_pid] = round;
#ifdef TWO_STEPS
        before = announced;
        announced = announced | BIT(_pid);
#else
        d_step { before = announced; announced = announced | BIT(_pid) }
#endif
#ifdef EARLY_ARRIVAL
        arrive();
        serve();
#else
        serve();
        arrive();
#endif
        if
        :: last ->
            arrivals = 0;
#ifdef LATE_CLEAR
            generation = round;
            announced = 0
#else
            announced = 0;
            generation = round
#endif
        :: else -> generation == round
        fi;
        i = 0;
        do
        :: i < N ->
            assert(i == _pid || served[round * 4 + PAIR(_pid, i)] == 1);
            i++
        :: else -> break
        od;
        in[_pid] = 0;
        before = 0;
        round++
    :: else -> break
    od
}
