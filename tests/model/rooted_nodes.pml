/* Rooted rounds of a group on two nodes (runtime/teams/internode_rooted.c): PE 0 is alone on node 0; PEs 1 and 2 are on
 * node 1, whose leader is PE 1.
 *
 * A full round of node 1 has two parts: its PEs meet, the leaders exchange words with data behind which the words
 * stay, and the PEs meet again to hear of it. A root puts its data into its own slot, and into the slot of the other
 * node's leader, and goes on. Messages overtake each other; a put's data arrives before its word. In one rooted
 * round one PE may arrive at a full one instead: it fails, and the round counts as a rooted one.
 *
 * Holds: everyone reads what was brought to that very round; all PEs have the same number of full rounds behind them
 * at the end, and those of node 1 of meetings there; nobody waits for ever; and nobody takes a full round for a
 * rooted one that it was not for anyone.
 *
 * Mutants: BY_ROUND: full rounds use the two places by the number of the round.
 *          NEVER_FULL: no round has to be full.
 *          EARLY_WORD: a message's word is stored before its data.
 *          NO_PART: a rooted round does not count as a meeting of the node.
 *          NOT_ASKED_NODES: a leader does not ask whether other nodes are in a rooted round.
 *          NOT_ASKED_ROOT: who waits for a root of another node does not ask it.
 *          NO_LOCAL_LOOK: a PE in a full round does not look whether one of its node is in a rooted one.
 *          WORDS_LEFT: a leader whose round turns does not wait until its words have arrived.
 *          NOT_FULL_NEXT: the round after one in which PEs differed may be rooted. */
#define N      3
#define EVERY  3
#define ROUNDS 5

#define FULL   N /* a kind; the others are the root's number */
#define NODE(pe)   ((pe) > 0)
#define LEADER(pe) ((pe) > 0)

#ifdef BY_ROUND
#define HALF (r % 2)
#else
#define HALF (full % 2)
#endif
#define ROOT(pe)  (EVERY * (pe) + r % EVERY)
#define CAME(node) (EVERY * (node) + r % EVERY)
#define OTHER_OF_NODE (3 - me)

byte kind[ROUNDS + 1];
byte odd_pe, odd_round; /* odd_pe == N: nobody differs */

byte inbox[4], inbox_word[4], inbox_sign[4]; /* [2 * leader + half] */
byte met_word[2 * N], met_value[2 * N];      /* of node 1: [2 * PE + half] */
byte root_word[EVERY * N], root[EVERY * N];
bool root_differs[EVERY * N];                /* the word is of a full round */
byte came[EVERY * 2];                        /* rooted rounds at which PEs of a node have arrived */
byte flying[N];                              /* messages of a PE that have not arrived */
byte ended, fulls, parts_of_node;

/* What a round says of the PEs' rounds before it: 0 or 1, or one of these. */
#define MIXED  2
#define TURNED 3

#ifdef NEVER_FULL
#define CAN_BE_ROOTED (!differed)
#elif defined(NOT_FULL_NEXT)
#define CAN_BE_ROOTED (r % EVERY != 0)
#else
#define CAN_BE_ROOTED (r % EVERY != 0 && !differed)
#endif
#ifdef NOT_ASKED_NODES
#define ELSEWHERE false
#else
#define ELSEWHERE (CAN_BE_ROOTED && came[CAME(1 - NODE(me))] == r)
#endif
#ifdef NO_LOCAL_LOOK
#define HERE false
#else
#define HERE (CAN_BE_ROOTED && came[CAME(1)] == r)
#endif
#define IS_AWAY (NODE(kind[r]) != NODE(me))
#ifdef NOT_ASKED_ROOT
#define ROOT_SAYS false
#else
#define ROOT_SAYS (IS_AWAY && root_word[ROOT(kind[r])] == r && root_differs[ROOT(kind[r])])
#endif

inline store_root(at, what)
{
    d_step {
        root_differs[at] = what;
        root_word[at] = r
    }
}

/* A leader's word behind the data of its node, and a root's behind its own. */
proctype leaders_message(byte from, at, r, sign)
{
#ifndef EARLY_WORD
    inbox[at] = r;
#endif
    d_step {
        inbox_sign[at] = sign;
        inbox_word[at] = r
    }
#ifdef EARLY_WORD
    inbox[at] = r;
#endif
    flying[from]--
}

proctype roots_message(byte from, at, r)
{
#ifndef EARLY_WORD
    root[at] = r;
#endif
    store_root(at, false);
#ifdef EARLY_WORD
    root[at] = r;
#endif
    flying[from]--
}

/* The PEs of node 1. */
inline meet(value, is_first)
{
    parts++;
    met++;
    d_step {
        met_value[2 * me + met % 2] = value;
        met_word[2 * me + met % 2] = parts
    }
    if
    :: met_word[2 * OTHER_OF_NODE + met % 2] == parts
    :: is_first && HERE ->
        met--;
        sign = TURNED
    fi
}

inline exchange()
{
    flying[me]++;
    run leaders_message(me, 2 * (1 - me) + HALF, r, sign);
    if
    :: inbox_word[2 * me + HALF] == r ->
        if
        :: inbox_sign[2 * me + HALF] != sign -> sign = MIXED
        :: else
        fi
    :: ELSEWHERE -> sign = TURNED
    fi
}

inline full_round()
{
    full++;
    sign = earlier;
    if
    :: me > 0 ->
        meet(sign, true);
        if
        :: sign != TURNED && met_value[2 * OTHER_OF_NODE + met % 2] != sign -> sign = MIXED
        :: else
        fi
    :: else
    fi;
    if
    :: sign == TURNED
    :: else ->
        if
        :: me < 2 -> exchange()
        :: else
        fi;
        if
        :: me > 0 ->
            meet(sign, false);
            if
            :: me == 2 -> sign = met_value[2 * 1 + met % 2]
            :: else
            fi
        :: else
        fi
    fi;
    if
    :: sign == TURNED ->
        assert(odd_pe != N && r == odd_round);
        full--;
        earlier = 1;
        store_root(ROOT(me), true);
#ifndef WORDS_LEFT
        flying[me] == 0
#endif
    :: else ->
        assert(sign == MIXED || inbox[2 * LEADER(me) + HALF] == r);
        differed = sign == MIXED;
        earlier = 0;
        if
        :: differed && gave -> flying[me] == 0
        :: else
        fi;
        gave = false
    fi
}

inline rooted_round()
{
    came[CAME(NODE(me))] = r;
#ifndef NO_PART
    parts++;
#endif
    if
    :: kind[r] == me ->
        root[ROOT(me)] = r;
        store_root(ROOT(me), false);
        flying[me]++;
        gave = true;
        run roots_message(me, ROOT(1 - NODE(me)), r)
    :: else ->
        at = (IS_AWAY -> ROOT(NODE(me)) : ROOT(kind[r]));
        if
        :: root_word[at] == r ->
            if
            :: root_differs[at] ->
                assert(r == odd_round);
                earlier = 1
            :: else -> assert(root[at] == r)
            fi
        :: ROOT_SAYS -> earlier = 1
        fi
    fi
}

proctype pe(byte me)
{
    byte r = 1, full = 0, parts = 0, met = 0, earlier = 0, sign, at;
    bool differed = false, gave = false;

    do
    :: r <= ROUNDS ->
        if
        :: kind[r] == FULL || !CAN_BE_ROOTED || (odd_pe == me && odd_round == r) -> full_round()
        :: else -> rooted_round()
        fi;
        r++
    :: else -> break
    od;
    atomic {
        assert(ended == 0 || fulls == full);
        assert(me == 0 || parts_of_node == 0 || parts_of_node == parts);
        fulls = full;
        if
        :: me > 0 -> parts_of_node = parts
        :: else
        fi;
        ended++
    }
}

init {
    byte r = 1;

    do
    :: r <= ROUNDS ->
        if
        :: kind[r] = FULL
        :: r % EVERY != 0 -> kind[r] = 0
        :: r % EVERY != 0 -> kind[r] = 2
#ifdef NEVER_FULL
        :: kind[r] = 2
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
    fi;
    if
    :: odd_round > 0 ->
        if
        :: odd_pe = 0
        :: odd_pe = 1
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
