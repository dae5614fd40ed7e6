/* Fences of kernels (include/gshmem/device/order.h, runtime/proxy/channel.c), for spin.
 *
 * A context has two channels. In each, a thread issues one command; a position may be taken long before it is
 * written. A third thread learns of both commands, fences and issues one more in a channel of its choice. A
 * fourth issues a command at any time, also in the middle of that fence; a fifth learns of it, fences, also at
 * the same time, and issues one more. The proxy takes from either channel what is at its head. Properties: it
 * takes what comes after a fence when it has taken all that was issued before that; and all of it in the end.
 *
 * Mutants, which must fail:
 *     -DOWN_CHANNEL    a fence speaks of its own channel alone
 *     -DAS_WRITTEN     the proxy passes a fence when there is nothing to be seen in the other ring
 *     -DTICKET_FIRST   a fence takes its position before it reads those of other channels
 *     -DEQUAL_SUM      a fence is left out where the sum of tickets is what the last one of its channel left
 */
#define CHANNELS 2
#define SLOTS 8           /* of each ring, which is not gone round; one is left */

#define EMPTY 0
#define FIRST 2           /* before the fence: FIRST + c in channel c */
#define SECOND 4          /* behind it */
#define LATE 5
#define AFTER_LATE 6      /* behind a fence that comes after LATE */
#define FENCE 7

typedef channel {
    byte ticket;
    byte taken;
    byte fenced;          /* the sum of tickets behind its last fence */
    byte what[SLOTS];
    byte position[SLOTS]; /* of a fence: in the other channel */
};
channel c[CHANNELS];

byte issued = 0;          /* commands of the first two threads that are over */
bit late_issued = 0;
bit posted[7];            /* what the proxy has taken */

inline issue(own, command)
{
    atomic { at = c[own].ticket; c[own].ticket++ };
    c[own].what[at] = command
}

proctype first(byte own)
{
    byte at;

    issue(own, FIRST + own);
    issued++
}

proctype late()
{
    byte at;

    if
    :: issue(0, LATE)
    :: issue(1, LATE)
    fi;
    late_issued = 1
}

/* Reading the other's ticket and one's own are two steps, as is taking one. */
proctype fencer(byte then)
{
    byte own, at, other, mine;

    (then == SECOND && issued == 2) || (then == AFTER_LATE && late_issued);
    if
    :: own = 0
    :: own = 1
    fi;
#ifdef TICKET_FIRST
    atomic { at = c[own].ticket; c[own].ticket++ };
    other = c[1 - own].ticket;
    c[own].position[at] = other;
    c[own].what[at] = FENCE;
#else
    other = c[1 - own].ticket;
    mine = c[own].ticket;
    if
#ifdef EQUAL_SUM
    :: other + mine == c[own].fenced
#endif
    :: else ->
        atomic { at = c[own].ticket; c[own].ticket++ };
#ifdef OWN_CHANNEL
        c[own].position[at] = 0;
#else
        c[own].position[at] = other;
#endif
        c[own].what[at] = FENCE;
        c[own].fenced = other + at + 1
    fi;
#endif
    issue(own, then)
}

#define head(i) c[i].what[c[i].taken]
#ifdef AS_WRITTEN
#define may_pass(i) (head(1 - i) == EMPTY || c[1 - i].taken >= c[i].position[c[i].taken])
#else
#define may_pass(i) (c[1 - i].taken >= c[i].position[c[i].taken])
#endif

inline take(i)
{
    if
    :: head(i) == SECOND -> assert(posted[FIRST] && posted[FIRST + 1])
    :: head(i) == AFTER_LATE -> assert(posted[LATE])
    :: else
    fi;
    if
    :: head(i) != FENCE -> posted[head(i)] = 1
    :: else
    fi;
    c[i].taken++
}

proctype proxy()
{
    do
    :: atomic { head(0) != EMPTY && (head(0) != FENCE || may_pass(0)) -> take(0) }
    :: atomic { head(1) != EMPTY && (head(1) != FENCE || may_pass(1)) -> take(1) }
    :: posted[FIRST] && posted[FIRST + 1] && posted[SECOND] && posted[AFTER_LATE] -> break
    od
}

init
{
    atomic {
        run proxy();
        run first(0);
        run first(1);
        run late();
        run fencer(SECOND);
        run fencer(AFTER_LATE)
    }
}
