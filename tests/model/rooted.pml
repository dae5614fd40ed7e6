/* Rooted rounds among full ones (runtime/teams/rooted.h).
 *
 * Three PEs make the same rounds, of kinds that are chosen at the beginning: full ones, in which
 * each brings data and waits for all, and rooted ones, in which the root brings data and goes on,
 * and the others wait for it alone. Every round whose number is a multiple of EVERY is full. In one
 * rooted round one PE may arrive at a full one instead.
 *
 * Holds: everyone reads what was brought to that very round; all PEs have the same number of full
 * rounds behind them at the end; nobody waits for ever; and nobody takes a full round for a rooted
 * one that it was not for anyone.
 *
 * Mutants: BY_ROUND: full rounds use the two slots by the number of the round.
 *          NEVER_FULL: no round has to be full.
 *          EARLY_WORD: the root's word is written before its data.
 *          NO_TURN: a PE in a full round does not look whether others are in a rooted one.
 *          NOT_RETAKEN: a full round that ended as a rooted one counts as a full one.
 *          NO_ROOT_WORD: such a PE leaves no word for those who take it for the root.
 *          LAST_WORD: a PE shows only its last rooted round, and one that is ahead counts. */
#define N      3
#define EVERY  3
#define ROUNDS 7

#define FULL   N /* a kind; the others are the root's number */

#ifdef BY_ROUND
#define NOTE(pe) (2 * (pe) + r % 2)
#else
#define NOTE(pe) (2 * (pe) + count % 2)
#endif
#define ROOT(pe) (EVERY * (pe) + r % EVERY)
#define VALUE(pe) (10 * r + (pe))

byte kind[ROUNDS + 1];
byte odd_pe, odd_round; /* odd_pe == N: nobody differs */

byte note_word[2 * N], note[2 * N];
byte root_word[EVERY * N], root[EVERY * N];
bool root_differs[EVERY * N]; /* the word is of a full round */
byte came[EVERY * N];         /* the rooted rounds that a PE has arrived at */
byte ended, fulls;

#ifdef LAST_WORD
#define IS_ROOTED_AT(pe) (r % EVERY != 0 && came[EVERY * (pe)] >= r)
#define COME             came[EVERY * me] = r
#else
#define IS_ROOTED_AT(pe) (r % EVERY != 0 && came[ROOT(pe)] == r)
#define COME             came[ROOT(me)] = r
#endif
#ifdef NO_TURN
#define INSTEAD false
#else
#define INSTEAD (IS_ROOTED_AT((me + 1) % N) || IS_ROOTED_AT((me + 2) % N))
#endif

inline read_note(other)
{
    assert(note[NOTE(other)] == VALUE(other))
}

inline look(other)
{
    if
    :: !turned ->
        if
        :: note_word[NOTE(other)] == r
        :: INSTEAD -> turned = true
        fi
    :: else
    fi
}

inline full_round()
{
    count++;
    note[NOTE(me)] = VALUE(me);
    note_word[NOTE(me)] = r;
    turned = false;
    look((me + 1) % N);
    look((me + 2) % N);
    if
    :: turned ->
        assert(odd_pe != N && r == odd_round);
#ifndef NO_ROOT_WORD
        d_step {
            root_differs[ROOT(me)] = true;
            root_word[ROOT(me)] = r
        }
#endif
#ifndef NOT_RETAKEN
        count--
#endif
    :: else ->
        read_note((me + 1) % N);
        read_note((me + 2) % N)
    fi
}

inline rooted_round()
{
    COME;
    if
    :: kind[r] == me ->
#ifdef EARLY_WORD
        d_step {
            root_differs[ROOT(me)] = false;
            root_word[ROOT(me)] = r
        }
        root[ROOT(me)] = VALUE(me)
#else
        root[ROOT(me)] = VALUE(me);
        d_step {
            root_differs[ROOT(me)] = false;
            root_word[ROOT(me)] = r
        }
#endif
    :: else ->
        root_word[ROOT(kind[r])] == r;
        assert(root_differs[ROOT(kind[r])] == (odd_pe == kind[r] && odd_round == r));
        if
        :: root_differs[ROOT(kind[r])]
        :: else -> assert(root[ROOT(kind[r])] == VALUE(kind[r]))
        fi
    fi
}

proctype pe(byte me)
{
    byte r = 1, count = 0;
    bool turned;

    do
    :: r <= ROUNDS ->
        if
        :: kind[r] == FULL || (odd_pe == me && odd_round == r) -> full_round()
        :: else -> rooted_round()
        fi;
        r++
    :: else -> break
    od;
    atomic {
        assert(ended == 0 || fulls == count);
        fulls = count;
        ended++
    }
}

init {
    byte r = 1;

    do
    :: r <= ROUNDS ->
        if
        :: kind[r] = FULL
#ifdef NEVER_FULL
        :: kind[r] = 0
#else
        :: r % EVERY != 0 -> kind[r] = 0
        :: r % EVERY != 0 -> kind[r] = 1
#endif
        fi;
        r++
    :: else -> break
    od;
    odd_pe = N;
    if
    :: true
    :: kind[1] != FULL -> odd_round = 1
    :: kind[2] != FULL -> odd_round = 2
    :: kind[4] != FULL -> odd_round = 4
    fi;
    if
    :: odd_round > 0 ->
        if
        :: odd_pe = 0
        :: odd_pe = 2
        fi
    :: else
    fi;
    atomic {
        run pe(0);
        run pe(1);
        run pe(2)
    }
}
