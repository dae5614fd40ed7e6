/* The channel's protocol (include/gshmem/channel.h), for spin.
 *
 * Producers take tickets and store a slot word by word, in any order (the stores of one slot may be
 * delayed and reordered: each word is written by a process of its own choice of moment). The
 * consumer takes slots in order. A command has one slot or two: a put with its signal has one if it
 * is small enough to be packed. Two properties: what the consumer takes is exactly what the holder
 * of that position wrote, all words of it, and both slots of a pair; and nobody writes a slot that
 * has not been taken.
 *
 *     spin -a channel.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * Mutants, which must fail:
 *     -DNO_ROOM_CHECK   producers do not wait for room
 *     -DONE_PHASE_WORD  only the first word carries the phase
 *     -DSTALE_RAISE     the copy of the tail may be set to more than the tail
 *     -DHALF_TAKEN      a pair is taken when its first slot is complete
 *     -DROOM_FOR_ONE    a pair waits for the room of one slot
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef EACH
#define EACH 2            /* commands a producer sends */
#endif
#define SLOTS 2
#define WORDS 2           /* two show all that four do: one that comes early, one that comes late */

byte ticket = 0;          /* next position */
byte tail = 0;            /* positions the consumer has taken */
byte tail_copy = 0;

/* A word is its phase and its payload, which is the position + 1 of the command it belongs to. The
 * first word also says whether the next slot belongs to the command. */
typedef slot { bit phase[WORDS]; byte payload[WORDS]; bit more };
slot ring[SLOTS];

#define lap_phase(position) (1 - ((position) / SLOTS) % 2)

#ifdef ONE_PHASE_WORD
#define complete(position) (p0 == lap_phase(position))
#else
#define complete(position) (p0 == lap_phase(position) && p1 == lap_phase(position))
#endif

#ifdef HALF_TAKEN
#define pair_complete(position) true
#else
#define pair_complete(position) complete(position)
#endif

#ifdef ROOM_FOR_ONE
#define room_of(n) 1
#else
#define room_of(n) (n)
#endif

/* For the slots before `end`. */
inline wait_for_room(end)
{
#ifdef NO_ROOM_CHECK
    skip
#else
    do
    :: end - tail_copy <= SLOTS -> break
    :: else ->
        seen = tail;
#ifdef STALE_RAISE
        tail_copy = seen + 1;
#else
        /* an atomic maximum: another producer may have raised it further meanwhile */
        if
        :: atomic { tail_copy < seen -> tail_copy = seen }
        :: atomic { tail_copy >= seen -> skip }
        fi
#endif
    od
#endif
}

inline store(position, w, more_follows)
{
    ring[(position) % SLOTS].payload[w] = (position) + 1;
    if
    :: w == 0 -> ring[(position) % SLOTS].more = more_follows
    :: else -> skip
    fi;
    ring[(position) % SLOTS].phase[w] = lap_phase(position)
}

/* Word and phase are one 8-byte store; the words of a slot become visible in either order. */
inline store_slot(position, more_follows)
{
    if
    :: atomic { store(position, 0, more_follows) }; atomic { store(position, 1, more_follows) }
    :: atomic { store(position, 1, more_follows) }; atomic { store(position, 0, more_follows) }
    fi
}

proctype producer()
{
    byte mine, seen, n, sent = 0;

    do
    :: sent < EACH ->
        if
        :: n = 1
        :: n = 2
        fi;
        atomic { mine = ticket; ticket = ticket + n };
        wait_for_room(mine + room_of(n));
        assert(mine + n - tail <= SLOTS);
        store_slot(mine, n - 1);
        if
        :: n == 2 -> store_slot(mine + 1, 0)
        :: else -> skip
        fi;
        sent++
    :: else -> break
    od
}

/* Loads each word once; loads may also be in any order. */
inline load_slot(position)
{
    if
    :: atomic { p0 = ring[(position) % SLOTS].phase[0]; v0 = ring[(position) % SLOTS].payload[0];
                more = ring[(position) % SLOTS].more };
       atomic { p1 = ring[(position) % SLOTS].phase[1]; v1 = ring[(position) % SLOTS].payload[1] }
    :: atomic { p1 = ring[(position) % SLOTS].phase[1]; v1 = ring[(position) % SLOTS].payload[1] };
       atomic { p0 = ring[(position) % SLOTS].phase[0]; v0 = ring[(position) % SLOTS].payload[0];
                more = ring[(position) % SLOTS].more }
    fi
}

inline take(n)
{
    position = position + n;
    taken++;
    tail = position
}

proctype consumer()
{
    byte position = 0, taken = 0;
    bit p0, p1, more;
    byte v0, v1;

    do
    :: taken < PRODUCERS * EACH ->
        load_slot(position);
        if
        :: complete(position) && !more ->
            assert(v0 == position + 1 && v1 == position + 1);
            take(1)
        :: complete(position) && more ->
            assert(v0 == position + 1 && v1 == position + 1);
            load_slot(position + 1);
            if
            :: pair_complete(position + 1) ->
                assert(v0 == position + 2 && v1 == position + 2);
                take(2)
            :: else -> skip
            fi
        :: else -> skip
        fi
    :: else -> break
    od
}

init
{
    byte i = 0;

    atomic {
        do
        :: i < PRODUCERS -> run producer(); i++
        :: else -> break
        od;
        run consumer()
    }
}
