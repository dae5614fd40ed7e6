/* A lock that its owner takes without an atomic step (runtime/base/biased_lock.h, open_batches.c).
 *
 * A thread's stores stay in the buffer of its CPU until they become visible, in their order, whenever the CPU
 * likes. The owner stores that it is within, and then reads whether it is still the owner, with no fence between
 * the two. Who revokes the ownership makes all threads of the process fence (membarrier empties their buffers). Atomic
 * steps empty the buffer of the thread that makes them; the lock's other words are written by those alone.
 *
 * Holds: one thread at a time is within, and all that it stored there is visible to the next one; nobody waits
 * for ever.
 *
 * Mutants: NO_FENCE: who revokes does not make the other threads fence.
 *          NO_WAIT: it does not wait for the owner to leave.
 *          ONE_STEP: others may take the lock before the owner has left.
 *          ONE_WORD: that the owner is within is a word of the lock, and not of the thread.
 *          NOT_AGAIN: the owner does not look again whether it is the owner.
 *          LATE_WORD: the owner looks again before it stores that it is within. */
#define N 2          /* threads, which write; both may become the owner */
#define TURNS 2
#define NOBODY 255
#define REVOKED 254

#define WITHIN 1     /* a store in a buffer: the owner is within, it has left, or one of its data */
#define LEFT 2
#define DATA 3

byte owner = NOBODY;
bool within[N], taken, outer; /* that a thread is within one of its locks, as seen by others */
byte inside;         /* threads that hold the lock, by their program */
byte made[N], seen[N]; /* turns of each, by its program; and those of which the data is visible */
chan buffer[N] = [4] of { byte };
byte word;

#ifdef ONE_WORD
#define WHOSE(i) 0
#else
#define WHOSE(i) i
#endif

inline drain_one(i)
{
    buffer[i]?word;
    if
    :: word == WITHIN -> within[WHOSE(i)] = true
    :: word == LEFT -> within[WHOSE(i)] = false
    :: word == DATA -> seen[i]++
    fi
}

inline drain(i)
{
    d_step { do :: nempty(buffer[i]) -> drain_one(i) :: empty(buffer[i]) -> break od; word = 0 }
}

/* A CPU makes its oldest store visible whenever it likes. */
active [N] proctype cpu()
{
    byte me = _pid;
end:
    do
    :: atomic { nempty(buffer[me]) -> drain_one(me); word = 0 }
    od
}

#define SEES(i) (i == me || seen[i] == made[i]) /* a thread sees its own stores at once */

inline hold()
{
    d_step { assert(inside == 0 && SEES(0) && SEES(1)); inside++ }
}

inline let_go()
{
    d_step { inside--; made[me]++ }
}

inline take()   /* has: it is this thread's */
{
    atomic { !taken -> taken = true };
    if
    :: owner == NOBODY -> has = true
    :: else -> has = false; taken = false
    fi
}

inline revoke() /* by who has the outer lock */
{
    if
    :: owner != NOBODY && owner != me ->
        last = owner;
#ifdef ONE_STEP
        owner = NOBODY;
#else
        owner = REVOKED;
#endif
#ifndef NO_FENCE
        drain(0);
        drain(1);
#endif
#ifndef NO_WAIT
        !within[WHOSE(last)];
        last = 0;
#endif
        owner = NOBODY
    :: else
    fi
}

/* has: it is within, as the owner */
inline enter()
{
    has = false;
    if
    :: owner == me ->
#ifdef LATE_WORD
        if
        :: owner == me -> buffer[me]!WITHIN; has = true
        :: else
        fi
#else
        buffer[me]!WITHIN;
#ifdef NOT_AGAIN
        has = true
#else
        if
        :: owner == me -> has = true
        :: else -> buffer[me]!LEFT
        fi
#endif
#endif
    :: else
    fi
}

active [N] proctype thread()
{
    byte me = _pid - N, turns, last;
    bool has;

    do
    :: turns == TURNS -> break
    :: else ->
        enter();
        if
        :: has -> hold(); buffer[me]!DATA; let_go(); buffer[me]!LEFT
        :: else ->
            drain(me); /* an atomic step begins each of these */
            if
            :: take()
            :: has = false /* a batch is full or not open: its lock alone does not do */
            fi;
            if
            :: has -> hold(); buffer[me]!DATA; let_go(); drain(me); taken = false
            :: else ->
                atomic { !outer -> outer = true };
                revoke();
                take();
                if
                :: has ->
                    hold(); buffer[me]!DATA; let_go();
                    if
                    :: owner = me
                    :: true
                    fi;
                    drain(me);
                    taken = false
                :: else
                fi;
                outer = false
            fi
        fi;
        if
        :: has -> turns++
        :: else /* it is the owner: once more, by the short way */
        fi
    od
}

/* It posts what the threads have written, and writes nothing. */
active proctype proxy()
{
    byte me = 2 * N, turns, last;
    bool has;

    do
    :: turns == TURNS -> break
    :: else ->
        atomic { !outer -> outer = true };
        revoke();
        take();
        assert(has);
        hold();
        inside--;
        taken = false;
        outer = false;
        turns++
    od
}
