/* How kernels learn that commands are done (runtime/proxy/channel.c, include/gshmem/device), for spin.
 *
 * The ring itself is in channel.pml; here commands arrive in order. The proxy takes them while it has
 * records free, the network ends them in any order. Two threads ask for answers, through one response
 * slot that they take in turns; a third issues what nobody answers, of which one command fails, and a
 * fourth waits for quiet at any moment. Properties: who waits for `done` finds the effect of all that
 * was issued before, and is told of the failure among it; who waits for an answer gets its own, whole.
 *
 * Mutants, which must fail:
 *     -DDONE_COUNTS      done is how many have ended, whichever they are
 *     -DNO_RECORD_CHECK  a command is taken though its record is still in use
 *     -DFAILED_LATE      done is published before the count of failures
 *     -DANSWER_FIRST     the answer is written before its value
 *     -DNO_TAG           any answer in the slot is taken for one's own
 */
#define ASKERS 2
#define ASKS 2            /* each */
#define SILENT 2          /* commands without an answer */
#define FAILS 0           /* which of those fails */
#define COMMANDS (ASKERS * ASKS + SILENT)
#define RECORDS 2
#define TAGS 4            /* as many as there are; 256 in the library */

byte ticket = 0;
bit written[COMMANDS];    /* the ring, without laps */
bit asks[COMMANDS];
bit fails[COMMANDS];
byte tag_of[COMMANDS];

bit effect[COMMANDS];     /* the operation has happened */
byte taken = 0, finished = 0;
byte record[RECORDS];     /* position */
bit landed[RECORDS];

byte done = 0;            /* with its bit: */
bit done_failed = 0;
byte failed = 0, failures = 0;

bit owned = 0;            /* the response slot */
byte next_tag = 0;
byte answer = 0;          /* a tag */
byte value = 0;

inline issue(position, answered, failing, tag)
{
    atomic { position = ticket; ticket++ };
    atomic {
        asks[position] = answered;
        fails[position] = failing;
        tag_of[position] = tag;
        written[position] = 1
    }
}

proctype asker()
{
    byte position, tag, i = 0;

    do
    :: i < ASKS ->
        atomic { !owned -> owned = 1; next_tag = (next_tag + 1) % TAGS; tag = next_tag };
        issue(position, 1, 0, tag);
#ifdef NO_TAG
        answer != 0;
#else
        answer == tag;
#endif
        assert(effect[position]);
        assert(value == position + 1);
        owned = 0;
        i++
    :: else -> break
    od
}

proctype silent()
{
    byte position, i = 0;

    do
    :: i < SILENT -> issue(position, 0, i == FAILS, 0); i++
    :: else -> break
    od
}

proctype quiet()
{
    byte target, i, told;
    bit bad;

    target = ticket;
    atomic { done >= target -> bad = done_failed };
    told = 0;
    if
    :: bad -> told = failed; assert(told > 0)
    :: else
    fi;
    d_step {
        i = 0;
        do
        :: i < target ->
            assert(effect[i]);
            assert(!fails[i] || told > 0);
            i++
        :: else -> break
        od
    }
}

/* Ends the command in record r. Runs in the proxy, one at a time. */
inline land(r)
{
    effect[record[r]] = 1;
    if
    :: asks[record[r]] ->
#ifdef ANSWER_FIRST
        answer = tag_of[record[r]];
        value = record[r] + 1
#else
        value = record[r] + 1;
        answer = tag_of[record[r]]
#endif
    :: else
    fi;
    landed[r] = 1;
#ifdef DONE_COUNTS
    finished++
#endif
}

#ifdef NO_RECORD_CHECK
#define has_record true
#else
#define has_record (taken - finished < RECORDS)
#endif

#define in_flight(r) (taken > r && record[r] < taken && !landed[r])

proctype proxy()
{
    do
    :: taken < COMMANDS && written[taken] && has_record ->
        atomic { record[taken % RECORDS] = taken; landed[taken % RECORDS] = 0; taken++ }
    :: in_flight(0) -> land(0)
    :: in_flight(1) -> land(1)
    :: finished < taken && landed[finished % RECORDS] ->
#ifndef DONE_COUNTS
        failures = failures + fails[finished];
        finished++
#endif
    :: done != finished ->
#ifdef FAILED_LATE
        atomic { done = finished; done_failed = failures > 0 };
        failed = failures
#else
        failed = failures;
        atomic { done = finished; done_failed = failures > 0 }
#endif
    :: done == COMMANDS -> break
    od
}

init
{
    byte i = 0;

    atomic {
        run proxy();
        run silent();
        run quiet();
        do
        :: i < ASKERS -> run asker(); i++
        :: else -> break
        od
    }
}
