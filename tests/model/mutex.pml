/* The lock of runtime/base/mutex.h: threads take it by turns, sleep while it is taken, and make the
 * holder promise it when they have slept often.
 *
 * Holds: one at a time has it; nobody sleeps for ever; nobody takes it between the moment that it is given
 * to the one whom it was promised to and that one's turn.
 *
 * Mutants: NO_MARK: who takes it after a sleep does not say that others may sleep.
 *          ONE_WOKEN: one of those who sleep is woken for a promise, whoever that is.
 *          ANYBODY: who finds it given takes it, promised or not.
 *          BLIND_SLEEP: to look at it and to fall asleep are two steps. */
#define N 3
#define TURNS 2
#define SLEEPS 1

mtype = { FREE, TAKEN, WANTED, PROMISED, GIVEN };
mtype state = FREE;
byte holders, asleep; /* a bit for each thread */
byte promise = N;     /* to whom; N: to nobody */
byte heir = N;        /* whom it is given to */

#define MINE (1 << _pid)

inline wake_one()
{
    if
    :: asleep & 1 -> asleep = asleep & ~1
    :: asleep & 2 -> asleep = asleep & ~2
    :: asleep & 4 -> asleep = asleep & ~4
    :: asleep == 0
    fi
}

inline enter()
{
    d_step {
        assert(holders == 0 && (heir == N || heir == _pid));
        holders++;
        heir = N
    }
}

#ifdef NO_MARK
#define AFTER_SLEEP TAKEN
#else
#define AFTER_SLEEP WANTED
#endif

#ifdef ANYBODY
#define FOR_ME(p) true
#else
#define FOR_ME(p) p
#endif

inline take()
{
    slept = 0;
    promised = false;
    if
    :: atomic { state == FREE -> state = TAKEN; enter(); has = true }
    :: atomic { state != FREE -> has = false }
    fi;
    do
    :: has -> break
    :: else ->
        if
        :: atomic { state == FREE -> state = AFTER_SLEEP; enter(); has = true }
        :: atomic { state == GIVEN && FOR_ME(promised) -> state = AFTER_SLEEP; enter(); has = true }
        :: atomic { (state == TAKEN || state == WANTED) && slept < SLEEPS -> state = WANTED; seen = WANTED }
        :: atomic { (state == TAKEN || state == WANTED) && slept == SLEEPS ->
            state = PROMISED; promise = _pid; promised = true; seen = PROMISED }
        :: atomic { state == PROMISED || (state == GIVEN && !promised) -> seen = state }
        fi;
        if
        :: has
        :: !has ->
#ifdef BLIND_SLEEP
            if
            :: state == seen -> asleep = asleep | MINE
            :: state != seen
            fi;
#else
            atomic {
                if
                :: state == seen -> asleep = asleep | MINE
                :: state != seen
                fi
            }
#endif
            !(asleep & MINE);
            if
            :: slept < SLEEPS -> slept++
            :: else
            fi
        fi
    od
}

inline give()
{
    holders--;
    if
    :: atomic { state == TAKEN -> state = FREE }
    :: atomic { state == WANTED -> state = FREE; given = false; more = true }
    :: atomic { state == PROMISED -> state = GIVEN; heir = promise; promise = N; given = true; more = true }
    fi;
    if
    :: more && given ->
#ifdef ONE_WOKEN
        atomic { wake_one() }
#else
        asleep = 0
#endif
    :: more && !given -> atomic { wake_one() }
    :: !more
    fi;
    more = false;
    given = false
}

active [N] proctype thread()
{
    byte slept, turns;
    bool promised, has, given, more;
    mtype seen;

    do
    :: turns < TURNS ->
        take();
        give();
        turns++
    :: else -> break
    od
}
