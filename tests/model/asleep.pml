/* How a kernel wakes the proxy (runtime/proxy/service.c, network_fall_asleep; include/gshmem/device/post.h).
 *
 * A thread that posts a command stores it, and then reads whether the proxy sleeps, with no fence between the
 * two: its store may still be in the store buffer of its CPU when it reads. The proxy says that it sleeps, makes
 * all threads of the process fence (membarrier empties their store buffers), and looks for commands once more.
 *
 * Holds: each command is taken, though the sleep has no limit of time here.
 *
 * Mutants: NO_FENCE: the proxy does not make the other threads fence.
 *          EARLY_LOOK: the proxy looks for commands before it says that it sleeps.
 *          READ_FIRST: a thread reads whether the proxy sleeps before it stores its command.
 *          NOT_COUNTED: a wake-up that finds the proxy on its way to sleep is lost (no eventfd). */
#define N 2
#define EACH 2

bit asleep;
byte wakes;             /* the eventfd's count */
bool sleeps;            /* in poll */
byte buffered[N];       /* stores in the buffer of a thread's CPU */
byte ring[N];           /* commands that can be seen, */
byte taken[N];          /* and those that were taken */
byte ended;

inline drain(i)
{
    d_step { ring[i] = ring[i] + buffered[i]; buffered[i] = 0 }
}

/* The store of a CPU becomes visible whenever it likes. */
active [N] proctype buffer()
{
    byte me = _pid;
end:
    do
    :: buffered[me] > 0 -> drain(me)
    od
}

inline look_and_wake()
{
    if
    :: atomic { asleep -> drain(me); asleep = 0 } /* an exchange: one thread alone sees 1, and its buffer empties */
        if
#ifdef NOT_COUNTED
        :: atomic { sleeps -> wakes = 1 }
        :: !sleeps
#else
        :: true -> wakes = 1
#endif
        fi
    :: !asleep
    fi
}

active [N] proctype thread()
{
    byte me = _pid - N, posted = 0;

    do
    :: posted < EACH ->
#ifdef READ_FIRST
        look_and_wake();
        buffered[me]++;
#else
        buffered[me]++;
        look_and_wake();
#endif
        posted++
    :: else -> break
    od;
    ended++
}

#define WORK (ring[0] > taken[0] || ring[1] > taken[1])

inline take()
{
    d_step { taken[0] = ring[0]; taken[1] = ring[1] }
}

active proctype proxy()
{
    bool work;
end:
    do
    :: taken[0] == EACH && taken[1] == EACH -> break
    :: else ->
        take();
#ifdef EARLY_LOOK
        work = WORK;
        asleep = 1;
        drain(0); drain(1);
#else
        asleep = 1;
#ifndef NO_FENCE
        drain(0); drain(1);
#endif
        work = WORK;
#endif
        if
        :: work
        :: else ->
            sleeps = true;
end_asleep:
            atomic { wakes > 0 -> wakes = 0; sleeps = false }
        fi;
        asleep = 0
    od
}

/* When the threads have ended, their buffers are empty and nothing moves any more, all was taken: the proxy
 * does not stand in its sleep. */
active proctype observer()
{
    timeout -> assert(taken[0] == EACH && taken[1] == EACH)
}
