/* Fences of kernels (include/gshmem/device/order.h, runtime/proxy/channel.c), for spin.
 *
 * A context has two channels. In each, a thread issues one command; a position may be taken long before it is
 * written. A third thread learns of both commands, fences and issues one more in a channel of its choice. A
 * fourth issues a command at any time, also in the middle of that fence; a fifth learns of it, fences, also at
 * the same time, and issues one more. The proxy takes from either channel what is at its head. Properties: it
 * takes what comes after a fence when it has taken all that was issued before that; and all of it in the end.
 *
 * The channels may be on two lanes (GSHMEM_PROXIES, runtime/network/lanes.h): each then has a proxy of its own,
 * and a network that completes what was taken, later. What comes after a fence is then taken when all that was
 * issued before that on the other lane is complete. The host issues a command of its own on lane 0, at any
 * time; a fence of lane 1 waits for what it finds when it is reached.
 *
 * Mutants, which must fail:
 *     -DOWN_CHANNEL    a fence speaks of its own channel alone
 *     -DAS_WRITTEN     the proxy passes a fence when there is nothing to be seen in the other ring
 *     -DTICKET_FIRST   a fence takes its position before it reads those of other channels
 *     -DEQUAL_SUM      a fence is left out where the sum of tickets is what the last one of its channel left
 *     -DTAKEN_THERE    it is passed when the other lane has taken what was before it
 *     -DNO_HOST        a fence of lane 1 does not wait for the host's command
 *     -DOLD_HOST       it waits for what there was when the one before it was reached
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
    byte done;            /* on two lanes: complete */
    byte what[SLOTS];
    byte position[SLOTS]; /* of a fence: in the other channel */
};
channel c[CHANNELS];

byte issued = 0;          /* commands of the first two threads that are over */
bit late_issued = 0;
byte late_in;             /* the channel of LATE */
bit posted[7];            /* what the proxy has taken */
bit complete[8];
bit far;                  /* each channel is on a lane of its own */
bit host_issued, host_done;
bit host_before[7];       /* what the host had issued when the fence before SECOND or AFTER_LATE began */
bit host_target;          /* of the fence at the head of lane 1 */
bit host_seen;            /* whether it has been reached */
#ifdef OLD_HOST
bit host_reached;
#endif

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
    :: late_in = 0
    :: late_in = 1
    fi;
    issue(late_in, LATE);
    late_issued = 1
}

/* Reading the other's ticket and one's own are two steps, as is taking one. */
proctype fencer(byte then)
{
    byte own, at, other, mine;

    (then == SECOND && issued == 2) || (then == AFTER_LATE && late_issued);
    host_before[then] = host_issued;
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

proctype host()
{
    host_issued = 1
}

#define head(i) c[i].what[c[i].taken]
#ifdef TAKEN_THERE
#define there(i) c[1 - i].taken
#else
#define there(i) (far -> c[1 - i].done : c[1 - i].taken)
#endif
#ifdef AS_WRITTEN
#define may_pass(i) (head(1 - i) == EMPTY || there(i) >= c[i].position[c[i].taken])
#elif defined(NO_HOST)
#define may_pass(i) (there(i) >= c[i].position[c[i].taken])
#else
#define may_pass(i) (there(i) >= c[i].position[c[i].taken] && (!far || i == 0 || (host_seen && host_done >= host_target)))
#endif

/* A command that was issued before the fence: whether what comes after it in channel `i` may be taken. */
#define is_before(command, channel, i) (far && channel != i -> complete[command] : posted[command])

inline take(i)
{
    if
    :: head(i) == SECOND -> assert(is_before(FIRST, 0, i) && is_before(FIRST + 1, 1, i))
    :: head(i) == AFTER_LATE -> assert(is_before(LATE, late_in, i))
    :: else
    fi;
    if
    :: far && i == 1 && (head(i) == SECOND || head(i) == AFTER_LATE) -> assert(host_done >= host_before[head(i)])
    :: else
    fi;
    if
    :: head(i) != FENCE -> posted[head(i)] = 1
    :: else ->
        if
        :: i == 1 -> host_seen = 0
        :: else
        fi
    fi;
    c[i].taken++
}

/* A fence on lane 1 is reached. */
inline reach()
{
#ifdef OLD_HOST
    if
    :: !host_reached -> host_target = host_issued; host_reached = 1
    :: else
    fi;
#else
    host_target = host_issued;
#endif
    host_seen = 1
}

#define all_posted (posted[FIRST] && posted[FIRST + 1] && posted[SECOND] && posted[AFTER_LATE])

/* Of both channels, or of those of its lane. */
proctype proxy(byte lane)
{
    do
    :: atomic { (lane == 0 || !far) && head(0) != EMPTY && (head(0) != FENCE || may_pass(0)) -> take(0) }
    :: atomic { (lane == 1 || !far) && head(1) != EMPTY && (head(1) != FENCE || may_pass(1)) -> take(1) }
    :: atomic { lane == 1 && head(1) == FENCE && !host_seen -> reach() }
    :: all_posted -> break
    od
}

/* What both lanes have taken, and the host has posted, is completed. */
proctype network()
{
    do
    :: atomic { c[0].done < c[0].taken -> complete[c[0].what[c[0].done]] = 1; c[0].done++ }
    :: atomic { c[1].done < c[1].taken -> complete[c[1].what[c[1].done]] = 1; c[1].done++ }
    :: atomic { host_done < host_issued -> host_done = 1 }
    :: all_posted -> break
    od
}

init
{
    atomic {
        if
        :: far = 0; run proxy(0)
        :: far = 1; run proxy(0); run proxy(1); run network(); run host()
        fi;
        run first(0);
        run first(1);
        run late();
        run fencer(SECOND);
        run fencer(AFTER_LATE)
    }
}
