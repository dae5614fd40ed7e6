/* Rooted rounds of a group on two nodes (runtime/teams/internode_rooted.c): PE 0 is alone on node 0; PEs 1 and 2 are on
 * node 1, whose leader is PE 1.
 *
 * A full round of node 1 has two parts: its PEs meet, its leader exchanges words with the other one, each behind the
 * data of its node, and the PEs meet again to hear of it. A root puts its data into its own slot, and into the slot of
 * the other node's leader, and goes on. Messages overtake each other; a put's data arrives before its word. In one rooted
 * round one PE may arrive at a full one instead: it fails, and the round counts as a rooted one.
 *
 * Holds: everyone reads what was brought to that very round; there are never two messages on the way to one place;
 * all PEs have the same number of full rounds behind them at the end, and those of node 1 of meetings there; nobody
 * waits for ever; and nobody takes a full round for a rooted one that it was not for anyone.
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
#define ROUNDS 4

#define FULL   N /* a kind; the others are the root's number */
#define NODE(pe)   ((pe) > 0)
#define LEADER(pe) ((pe) > 0)

#ifdef BY_ROUND
#define HALF (r % 2)
#else
#define HALF (count % 2)
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

/* Messages: a leader's word behind the data of its node, and a root's behind its own. Two on the way to one place might
 * arrive in either order. */
byte sent_word[4], sent_sign[4], word_from[4];
byte sent_root[EVERY * 2], root_from[EVERY * 2];

inline carry_word(at)
{
    sent_word[at] ->
#ifdef EARLY_WORD
    d_step {
        inbox_sign[at] = sent_sign[at];
        inbox_word[at] = sent_word[at]
    }
    inbox[at] = sent_word[at];
#else
    inbox[at] = sent_word[at];
    d_step {
        inbox_sign[at] = sent_sign[at];
        inbox_word[at] = sent_word[at]
    }
#endif
    d_step {
        flying[word_from[at]]--;
        sent_word[at] = 0
    }
}

inline carry_root(at)
{
    sent_root[at] ->
#ifdef EARLY_WORD
    d_step {
        root_differs[at] = false;
        root_word[at] = sent_root[at]
    }
    root[at] = sent_root[at];
#else
    root[at] = sent_root[at];
    d_step {
        root_differs[at] = false;
        root_word[at] = sent_root[at]
    }
#endif
    d_step {
        flying[root_from[at]]--;
        sent_root[at] = 0
    }
}

active proctype network()
{
end:
    do
    :: carry_word(0)
    :: carry_word(1)
    :: carry_word(2)
    :: carry_word(3)
    :: carry_root(0)
    :: carry_root(1)
    :: carry_root(2)
    :: carry_root(3)
    :: carry_root(4)
    :: carry_root(5)
    od
}

/* The PEs of node 1. */
inline meet(value, is_first)
{
    d_step {
        parts++;
        met++;
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
    d_step {
        at = 2 * (1 - me) + HALF;
        assert(!sent_word[at]);
        flying[me]++;
        word_from[at] = me;
        sent_sign[at] = sign;
        sent_word[at] = r
    }
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
    d_step {
        count++;
        sign = earlier
    }
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
        d_step {
            assert(odd_pe != N && r == odd_round);
            count--;
            earlier = 1;
            root_differs[ROOT(me)] = true;
            root_word[ROOT(me)] = r
        }
#ifndef WORDS_LEFT
        flying[me] == 0
#endif
    :: else ->
        d_step {
            assert(sign == MIXED || inbox[2 * LEADER(me) + HALF] == r);
            differed = sign == MIXED;
            earlier = 0
        }
        if
        :: differed && gave -> flying[me] == 0
        :: else
        fi;
        gave = false
    fi
}

inline rooted_round()
{
    d_step {
        came[CAME(NODE(me))] = r;
#ifndef NO_PART
        parts++
#endif
    }
    if
    :: kind[r] == me ->
        root[ROOT(me)] = r;
        d_step {
            root_differs[ROOT(me)] = false;
            root_word[ROOT(me)] = r;
            at = ROOT(1 - NODE(me));
            assert(!sent_root[at]);
            flying[me]++;
            gave = true;
            root_from[at] = me;
            sent_root[at] = r
        }
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
    byte r = 1, count = 0, parts = 0, met = 0, earlier = 0, sign, at;
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
        assert(ended == 0 || fulls == count);
        assert(me == 0 || parts_of_node == 0 || parts_of_node == parts);
        fulls = count;
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
        :: r < ROUNDS -> kind[r] = FULL
        :: r % EVERY != 0 -> kind[r] = 0
        :: r == 1 -> kind[r] = 1
        :: r % EVERY != 0 && r > 1 -> kind[r] = 2
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
