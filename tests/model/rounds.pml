/* How members of a team meet in kernels (include/gshmem/device/round.h), in steps.
 *
 * PE i tells on link k the PE 2^k after it: a put of the piece that lies in its own scratch memory,
 * and then the word with the round's number and whether all it has heard of make the same call. The
 * network takes what is sent whenever it likes: it reads the sender's memory only then, and links
 * overtake each other. Rounds 1, 2 and 5 bring data; between the rounds 3 and 4, which do not, each
 * PE uses all of its scratch memory as it likes.
 *
 * Holds: everyone reads what was brought to that very round; what a PE leaves in its scratch memory
 * between two rounds without data stays; everyone knows at the end of a round whether one PE could
 * not make the call; and nobody waits for ever.
 *
 * Mutants: ONE_HALF: words and scratch memory are there once, for even and odd rounds alike.
 *          EARLY_WORD: the word arrives before the data.
 *          LAST_UNHEARD: a PE does not wait for its last link.
 *          DEAF: what was heard of others is not passed on.
 *          NO_CLOSE: round 4 brings data. */
#ifdef DEAF
#define N     4 /* among 3 each hears from each */
#define LINKS 2
#define ROUNDS 1
#else
#define N     3
#define LINKS 2
#define ROUNDS 5
#endif

#ifdef ONE_HALF
#define HALF(r) 0
#else
#define HALF(r) ((r) % 2)
#endif

#define AT(pe, link, r) (((pe) * LINKS + (link)) * 2 + HALF(r))
#define OWN(pe, r)      ((pe) * 2 + HALF(r))
#define AFTER(pe, link) (((pe) + (1 << (link))) % N)
#define BEFORE(pe, link) (((pe) + N - (1 << (link))) % N)
#define PIECE(pe, r)    (10 * (r) + (pe))
#ifdef NO_CLOSE
#define BRINGS(r) ((r) != 3)
#else
#define BRINGS(r) ((r) != 3 && (r) != 4)
#endif

byte own[N * 2];          /* pieces to be sent */
byte data[N * LINKS * 2]; /* pieces received */
byte word[N * LINKS * 2]; /* round << 1 | whether all agree */
byte refuses;             /* the PE that cannot make the call of the first round; N: none */

chan network[N * LINKS] = [2] of { byte, bool }; /* the round, and whether all agree */

proctype link_of(byte from; byte k)
{
    byte r;
    bool agree;

end:
    do
    :: network[from * LINKS + k] ? r, agree ->
#ifdef EARLY_WORD
        word[AT(AFTER(from, k), k, r)] = r << 1 | agree;
#endif
        if
        :: BRINGS(r) -> data[AT(AFTER(from, k), k, r)] = own[OWN(from, r)]
        :: else
        fi;
#ifndef EARLY_WORD
        word[AT(AFTER(from, k), k, r)] = r << 1 | agree
#endif
    od
}

inline step(k)
{
    network[me * LINKS + k] ! r, agree;
#ifdef LAST_UNHEARD
    if
    :: k < LINKS - 1 -> word[AT(me, k, r)] >> 1 == r
    :: else
    fi;
#else
    word[AT(me, k, r)] >> 1 == r;
#endif
#ifdef DEAF
    heard = heard && (word[AT(me, k, r)] & 1)
#else
    agree = agree && (word[AT(me, k, r)] & 1)
#endif
}

proctype pe(byte me)
{
    byte r = 1;
    bool agree, heard;

    do
    :: r <= ROUNDS ->
        atomic {
            heard = true;
            agree = r != 1 || me != refuses;
            if
            :: BRINGS(r) -> own[OWN(me, r)] = PIECE(me, r)
            :: else
            fi
        }
        step(0);
        step(1);
#ifndef LAST_UNHEARD
        assert((agree && heard) == (r != 1 || refuses == N));
#endif
        if
        :: BRINGS(r) ->
            assert(data[AT(me, 0, r)] == PIECE(BEFORE(me, 0), r) &&
                   data[AT(me, 1, r)] == PIECE(BEFORE(me, 1), r))
        :: r == 3 ->
            d_step {
                own[OWN(me, 0)] = 99;
                own[OWN(me, 1)] = 99;
                data[AT(me, 0, 0)] = 99;
                data[AT(me, 0, 1)] = 99;
                data[AT(me, 1, 0)] = 99;
                data[AT(me, 1, 1)] = 99
            }
            assert(own[OWN(me, 0)] == 99 && own[OWN(me, 1)] == 99 &&
                   data[AT(me, 0, 0)] == 99 && data[AT(me, 0, 1)] == 99 &&
                   data[AT(me, 1, 0)] == 99 && data[AT(me, 1, 1)] == 99)
        :: else
        fi;
        r++
    :: else -> break
    od
}

init {
    byte i = 0, k = 0;

    atomic {
        if
        :: refuses = 0
        :: refuses = N - 1
        :: refuses = N
        fi;
        do
        :: i < N ->
            run pe(i);
            k = 0;
            do
            :: k < LINKS -> run link_of(i, k); k++
            :: else -> break
            od;
            i++
        :: else -> break
        od
    }
}
