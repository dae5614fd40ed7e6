/* Fences of kernels (include/gshmem/device/order.h, runtime/proxy/channel.c), for spin.
 *
 * A context has two channels. In each, a thread issues one command, and others that have nothing to do
 * with it issue theirs before and after; a position may be taken long before it is written. A third
 * thread learns of both commands, fences and issues one more in a channel of its choice; a fourth does
 * the same after it. The proxy takes from either channel what is at its head. Properties: it takes what
 * comes after a fence when it has taken all that was issued before that; and all of it in the end.
 *
 * Mutants, which must fail:
 *     -DOWN_CHANNEL    a fence speaks of its own channel alone
 *     -DAS_WRITTEN     the proxy passes a fence when there is nothing to be seen in the other ring
 *     -DTICKET_FIRST   a fence takes its position before it reads those of other channels
 *     -DANY_FENCE      a fence is left out after one in any channel, and not in its own
 */
#define CHANNELS 2
#define SLOTS 7           /* of each ring, which is not gone round; one is left */

#define EMPTY 0
#define NOISE 1
#define FIRST 2           /* before the fences: FIRST + c in channel c */
#define SECOND 4          /* behind them: SECOND, SECOND + 1 */
#define FENCE 6

typedef channel {
    byte ticket;
    byte taken;
    byte fenced;          /* the sum of tickets behind its last fence */
    byte what[SLOTS];
    byte position[SLOTS]; /* of a fence: in the other channel */
};
channel c[CHANNELS];
#ifdef ANY_FENCE
byte fenced_anywhere;
#define known fenced_anywhere
#else
#define known c[own].fenced
#endif

byte issued = 0;          /* commands of the first two threads that are over */
bit posted[6];            /* what the proxy has taken */
byte fencers = 0;

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

proctype noise(byte own)
{
    byte at;

    issue(own, NOISE)
}

/* Reading the other's ticket and one's own are two steps, as is taking one. */
proctype fencer(byte number)
{
    byte own, at, other, mine, behind;

    issued == 2;
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
    :: other + mine == known
    :: else ->
        atomic { at = c[own].ticket; c[own].ticket++ };
#ifdef OWN_CHANNEL
        c[own].position[at] = 0;
#else
        c[own].position[at] = other;
#endif
        c[own].what[at] = FENCE;
        known = other + at + 1
    fi;
#endif
    issue(own, SECOND + number)
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
    :: head(i) >= SECOND && head(i) < FENCE -> assert(posted[FIRST] && posted[FIRST + 1])
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
    :: posted[FIRST] && posted[FIRST + 1] && posted[SECOND] && posted[SECOND + 1] -> break
    od
}

init
{
    atomic {
        run proxy();
        run noise(0);
        run noise(1);
        run first(0);
        run first(1);
        run fencer(0);
        run fencer(1)
    }
}
