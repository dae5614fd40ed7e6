/* How the members of a team meet where they share CPUs (runtime/teams/group.c, hub; wait.c):
 * arrivals are counted, the last one starts the next generation and wakes those who sleep.
 *
 * Holds: nobody leaves a round before all have arrived, nobody sleeps for ever.
 *
 * Mutants: LATE_RESET: the count is reset after the generation.
 *          BLIND_SLEEP: who goes to sleep does not look at the generation again.
 *          EARLY_LOOK: the last looks for sleepers before it changes the generation. */
#define N 3
#define ROUNDS 3

byte arrivals, generation, sleepers;
bool asleep[N];
byte arrived[ROUNDS + 1]; /* what the count should say, kept apart */

inline wake()
{
    if
    :: sleepers > 0 -> d_step { asleep[0] = false; asleep[1] = false; asleep[2] = false }
    :: else
    fi
}

active [N] proctype member()
{
    byte round = 1, last;

    do
    :: round <= ROUNDS ->
        arrived[round]++;
        d_step { arrivals++; last = (arrivals == N) }
        if
        :: last ->
#ifdef EARLY_LOOK
            wake();
            arrivals = 0;
            generation = round;
#else
#ifdef LATE_RESET
            generation = round;
            arrivals = 0;
#else
            arrivals = 0;
            generation = round;
#endif
            wake();
#endif
        :: else ->
            do
            :: generation == round -> break
            :: generation != round ->
                sleepers++;
#ifdef BLIND_SLEEP
                asleep[_pid] = true;
#else
                d_step { asleep[_pid] = (generation != round) } /* as a futex does */
#endif
                !asleep[_pid];
                sleepers--
            od
        fi;
        assert(arrived[round] == N);
        round++
    :: else -> break
    od
}
