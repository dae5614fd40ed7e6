/* How the members of a team meet (runtime/teams/group.c, flat), and how a slot's memory passes
 * from one team to the next.
 *
 * Team A is PEs 0, 1 and 2; after some rounds and the farewell, PE 0 cleans its block, and team B of
 * PEs 0 and 3 uses the same slot. In every round each member writes its note, says so in the word of
 * the note, waits for all words, and then reads all notes.
 *
 * Holds: everyone reads what was brought to that very round, and nobody waits for ever.
 *
 * Mutants: ONE_NOTE: one note for even and odd rounds alike.
 *          EARLY_WORD: the word is written before the note.
 *          NO_FAREWELL: a member leaves the team for good when its last round is over. */
#define ROUNDS 3

byte word[8], note[8]; /* [2 * PE + parity] */
byte farewells[4];
bool clean;            /* PE 0 has cleaned its block, and the parent of team B has met */

#ifdef ONE_NOTE
#define AT(pe, round) (2 * (pe))
#else
#define AT(pe, round) (2 * (pe) + (round) % 2)
#endif

#define VALUE(team, round) (10 * (team) + (round))

inline arrive(me, team, r)
{
#ifdef EARLY_WORD
    word[AT(me, r)] = r;
    note[AT(me, r)] = VALUE(team, r);
#else
    note[AT(me, r)] = VALUE(team, r);
    word[AT(me, r)] = r;
#endif
}

inline look(other, team, r)
{
    word[AT(other, r)] == r;
}

inline read(other, team, r)
{
    assert(note[AT(other, r)] == VALUE(team, r));
}

/* A member of team A, with the two others. */
inline team_a(me, x, y)
{
    round = 1;
    do
    :: round <= ROUNDS ->
        arrive(me, 1, round);
        look(x, 1, round);
        look(y, 1, round);
        read(x, 1, round);
        read(y, 1, round);
        round++
    :: else -> break
    od;
#ifdef NO_FAREWELL
    skip
#else
    farewells[x]++;
    farewells[y]++;
    farewells[me] == 2
#endif
}

inline team_b(me, other)
{
    round = 1;
    do
    :: round <= ROUNDS ->
        arrive(me, 2, round);
        look(other, 2, round);
        read(other, 2, round);
        round++
    :: else -> break
    od
}

active proctype pe_0()
{
    byte round;

    team_a(0, 1, 2);
    d_step {
        word[0] = 0;
        word[1] = 0;
        note[0] = 0;
        note[1] = 0;
        clean = true
    }
    team_b(0, 3)
}

active proctype pe_1()
{
    byte round;

    team_a(1, 0, 2)
}

active proctype pe_2()
{
    byte round;

    team_a(2, 0, 1)
}

active proctype pe_3()
{
    byte round;

    clean;
    team_b(3, 0)
}
