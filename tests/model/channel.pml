/* The channel's protocol (include/gshmem/channel.h), for spin.
 *
 * Producers take tickets and store a slot word by word, in any order (the stores of one slot may be
 * delayed and reordered: each word is written by a process of its own choice of moment). The
 * consumer takes slots in order. Two properties: what it takes is exactly what the holder of that
 * position wrote, all words of it; and nobody writes a slot that has not been taken.
 *
 *     spin -a channel.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * Mutants, which must fail:
 *     -DNO_ROOM_CHECK   producers do not wait for room
 *     -DONE_PHASE_WORD  only the first word carries the phase
 *     -DSTALE_RAISE     the copy of the tail may be set to more than the tail
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef EACH
#define EACH 3            /* commands a producer sends */
#endif
#define SLOTS 2
#define WORDS 2           /* two show all that four do: one that comes early, one that comes late */

byte ticket = 0;          /* next position */
byte tail = 0;            /* positions the consumer has taken */
byte tail_copy = 0;

/* A word is its phase and its payload, which is the position + 1 of the command it belongs to. */
typedef slot { bit phase[WORDS]; byte payload[WORDS] };
slot ring[SLOTS];

#define lap_phase(position) (1 - ((position) / SLOTS) % 2)

#ifdef ONE_PHASE_WORD
#define complete(position) (p0 == lap_phase(position))
#else
#define complete(position) (p0 == lap_phase(position) && p1 == lap_phase(position))
#endif

inline wait_for_room(position)
{
#ifdef NO_ROOM_CHECK
    skip
#else
    do
    :: position + 1 - tail_copy <= SLOTS -> break
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

inline store(position, w)
{
    ring[position % SLOTS].payload[w] = position + 1;
    ring[position % SLOTS].phase[w] = lap_phase(position)
}

/* Word and phase are one 8-byte store; the words of a slot become visible in either order. */
inline store_slot(position)
{
    if
    :: atomic { store(position, 0) }; atomic { store(position, 1) }
    :: atomic { store(position, 1) }; atomic { store(position, 0) }
    fi
}

proctype producer()
{
    byte mine, seen, sent = 0;

    do
    :: sent < EACH ->
        atomic { mine = ticket; ticket++ };
        wait_for_room(mine);
        assert(mine + 1 - tail <= SLOTS);
        store_slot(mine);
        sent++
    :: else -> break
    od
}

/* Loads each word once, then judges what it has: loads may also be in any order. */
proctype consumer()
{
    byte position = 0;
    bit p0, p1;
    byte v0, v1;

    do
    :: position < PRODUCERS * EACH ->
        if
        :: atomic { p0 = ring[position % SLOTS].phase[0]; v0 = ring[position % SLOTS].payload[0] };
           atomic { p1 = ring[position % SLOTS].phase[1]; v1 = ring[position % SLOTS].payload[1] }
        :: atomic { p1 = ring[position % SLOTS].phase[1]; v1 = ring[position % SLOTS].payload[1] };
           atomic { p0 = ring[position % SLOTS].phase[0]; v0 = ring[position % SLOTS].payload[0] }
        fi;
        if
        :: complete(position) ->
            assert(v0 == position + 1 && v1 == position + 1);
            position++;
            tail = position
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
