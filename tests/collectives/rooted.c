/* Small broadcasts, within a node and between nodes: the root does not wait for the others, which may come much later,
 * and what it sent stays until all have it. Roots and sizes change, other collectives come between,
 * and the source is overwritten at once. */
#include <stdbool.h>

#include "gshmem.h"

#include "check.h"

enum { AHEAD = 15, ROUNDS = 3000, SMALL = 130, MOST = 3100 };

static unsigned char *source, *dest;
static uint64_t *flag;

static unsigned char byte_of(int round, int root, size_t i)
{
    return (unsigned char)(round * 31 + root * 7 + (int)i + 1);
}

static void broadcast(gshmem_team_t team, int round, int root, size_t bytes, bool in_place)
{
    unsigned char *from = in_place ? dest : source;

    memset(dest, 0, MOST + 1);
    for (size_t i = 0; gshmem_team_my_pe(team) == root && i < bytes; i++)
        from[i] = byte_of(round, root, i);
    CHECK_OK(gshmem_broadcastmem(team, dest, from, bytes, root));
    memset(source, 255, MOST);
    for (size_t i = 0; i < bytes; i++)
        CHECK_EQ(dest[i], byte_of(round, root, i));
    CHECK_EQ(dest[bytes], 0);
}

/* Of a new team, whose rounds begin at 0, the root returns from all broadcasts before the others
 * have begun: they wait for what it does afterwards. */
static void try_ahead(int root)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    gshmem_team_t team;

    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team));
    *flag = 0;
    CHECK_OK(gshmem_barrier_all());
    if (me != root)
        CHECK_EQ(gshmem_signal_wait_until(flag, GSHMEM_CMP_EQ, 1), 1);
    for (int i = 0; i < AHEAD; i++)
        broadcast(team, i, root, (size_t)i * 8, i % 2);
    for (int pe = 0; me == root && pe < n; pe++)
        CHECK_OK(gshmem_uint64_p(flag, 1, pe));
    for (int i = 0; i < 40; i++) /* all of them do, now and then */
        broadcast(team, i, (root + i / 20) % n, 8, i % 2);
    CHECK_OK(gshmem_team_destroy(team));
}

/* Between rooted rounds, full ones with data in their slots, in all numbers. */
static void try_row(gshmem_team_t team)
{
    const int n = gshmem_team_n_pes(team), my = gshmem_team_my_pe(team);
    uint64_t draw = 1;

    for (int round = 0; round < ROUNDS; round++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        const unsigned what = (unsigned)(draw >> 40) % 8;
        const size_t bytes = (draw >> 48) % (round % 8 ? SMALL : MOST); /* up to 3056 B between nodes */
        if (what < 5) {
            broadcast(team, round, (int)((draw >> 33) % (uint64_t)n), bytes, what == 0);
            continue;
        }
        for (size_t i = 0; i < bytes; i++)
            source[i] = byte_of(round, my, i);
        CHECK_OK(gshmem_fcollectmem(team, dest, source, bytes));
        memset(source, 255, MOST);
        for (int pe = 0; pe < n; pe++) {
            for (size_t i = 0; i < bytes; i++)
                CHECK_EQ(dest[(size_t)pe * bytes + i], byte_of(round, pe, i));
        }
    }
}

int main(void)
{
    gshmem_team_t team;

    CHECK_OK(gshmem_init());
    const int n = gshmem_n_pes();
    CHECK((source = gshmem_malloc(MOST)));
    CHECK((dest = gshmem_malloc((size_t)(n + 1) * MOST)));
    CHECK((flag = gshmem_calloc(1, sizeof *flag)));
    for (int root = 0; root < n; root++)
        try_ahead(root);
    try_row(GSHMEM_TEAM_WORLD);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team));
    try_row(team);
    CHECK_OK(gshmem_team_destroy(team));
    CHECK_OK(gshmem_finalize());
    return 0;
}
