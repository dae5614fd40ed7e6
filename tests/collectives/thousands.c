/* Thousands of teams: 2,000 alive at once, of several kinds, with collectives on some and the memory that
 * each takes; 10,000 made and destroyed; and more than there can be.
 *
 *     thousands alive|many|full|remote */
#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gshmem.h"
#include "runtime/job/extensions.h" /* active sets, as shmem.h has them */

#include "check.h"

enum { ALIVE = 2000, MOST = 4076, SMALL = 50, LARGE = 3000, PES_MOST = 8, MEMORY_MOST = 64 * 1024 };

static int64_t source[PES_MOST * LARGE], dest[PES_MOST * LARGE];
static gshmem_team_t team[MOST + 1];
static int n, me;

/* ---- Kinds: all PEs, all in the reverse order, the first ones, each for itself -------------------- */

static gshmem_status_t make(int i)
{
    const int first = i % 4 == 3 ? me : 0, size = i % 4 == 2 ? (n + 1) / 2 : i % 4 == 3 ? 1 : n;

    return i % 4 == 1 ? gshmem_team_split_strided(GSHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &team[i])
                      : gshmem_team_split_strided(GSHMEM_TEAM_WORLD, first, size > 1, size, NULL, 0,
                                                  &team[i]);
}

static bool is_member(int i)
{
    return i % 4 != 2 || me < (n + 1) / 2;
}

static void check_pes(int i)
{
    const int size = gshmem_team_n_pes(team[i]);

    CHECK_EQ(size, i % 4 == 2 ? (n + 1) / 2 : i % 4 == 3 ? 1 : n);
    CHECK_EQ(gshmem_team_my_pe(team[i]), i % 4 == 1 ? n - 1 - me : i % 4 == 3 ? 0 : me);
    CHECK_EQ(gshmem_team_translate_pe(team[i], size - 1, GSHMEM_TEAM_WORLD),
             i % 4 == 1 ? 0 : i % 4 == 3 ? me : size - 1);
}

static int64_t value(int i, int pe, size_t k)
{
    return (int64_t)i * 1000003 + pe * 1009 + (int64_t)k;
}

/* A sum and an exchange. What came is what the members of this team have sent, and no others. */
static void try_team(int i, size_t count)
{
    const int size = gshmem_team_n_pes(team[i]), my = gshmem_team_my_pe(team[i]);

    for (size_t k = 0; k < count; k++)
        source[k] = value(i, my, k);
    CHECK_OK(gshmem_reduce(team[i], GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, dest, source, count));
    for (size_t k = 0; k < count; k++)
        CHECK_EQ(dest[k], size * value(i, 0, k) + (int64_t)size * (size - 1) / 2 * 1009);
    CHECK_OK(gshmem_fcollectmem(team[i], dest, source, count * sizeof *source));
    for (int pe = 0; pe < size; pe++) {
        for (size_t k = 0; k < count; k++)
            CHECK_EQ(dest[(size_t)pe * count + k], value(i, pe, k));
    }
    CHECK_OK(gshmem_team_sync(team[i]));
}

static void try_context(int i)
{
    static int64_t word;
    const int size = gshmem_team_n_pes(team[i]), my = gshmem_team_my_pe(team[i]);
    const int64_t mine = my;
    gshmem_ctx_t ctx;

    CHECK_OK(gshmem_team_create_ctx(team[i], 0, &ctx));
    CHECK_OK(gshmem_ctx_putmem(ctx, &word, &mine, sizeof word, (my + 1) % size));
    CHECK_OK(gshmem_ctx_quiet(ctx));
    CHECK_OK(gshmem_team_sync(team[i]));
    CHECK_EQ(word, (my + size - 1) % size);
    CHECK_OK(gshmem_ctx_destroy(ctx));
}

/* ---- Memory: pages of the node's file, and of this process --------------------------------------- */

static int64_t bytes_of_file(void)
{
    DIR *all = opendir("/proc/self/fd");
    int64_t bytes = 0;

    CHECK(all);
    for (struct dirent *e; (e = readdir(all));) {
        char path[300], to[100];
        struct stat s;
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        const ssize_t length = readlink(path, to, sizeof to - 1);
        to[length > 0 ? length : 0] = 0;
        if (strncmp(to, "/memfd:gshmem", 13) == 0 && stat(path, &s) == 0 && s.st_blocks * 512 > bytes)
            bytes = s.st_blocks * 512;
    }
    closedir(all);
    CHECK(bytes);
    return bytes;
}

static int64_t bytes_of_process(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    long kib = 0;
    char line[200];

    CHECK(f);
    while (fgets(line, sizeof line, f) && sscanf(line, "RssAnon: %ld", &kib) != 1)
        ;
    fclose(f);
    return kib * 1024;
}

/* ---- Tests ------------------------------------------------------------------------------------------ */

static void try_alive(void)
{
    const int here = gshmem_team_n_pes(GSHMEM_TEAM_HOST);
    const int64_t file = bytes_of_file(), process = bytes_of_process();

    for (int i = 0; i < ALIVE; i++) {
        CHECK_OK(make(i));
        CHECK_EQ(team[i] != GSHMEM_TEAM_INVALID, is_member(i));
    }
    CHECK(team[ALIVE - 1] >= 1500);
    for (int i = 0; i < ALIVE; i++) {
        if (is_member(i))
            check_pes(i);
        if (is_member(i) && (i % 100 == 0 || i == 1 || i / 4 == 256 / 4 || i / 4 == 1500 / 4 || i >= ALIVE - 4))
            try_team(i, SMALL);
    }
    CHECK_OK(gshmem_barrier_all());
    const int64_t more = (bytes_of_file() - file) / here + bytes_of_process() - process;
    if (more / ALIVE > MEMORY_MOST)
        CHECK_FAIL("a team takes %lld B of each PE", (long long)more / ALIVE);
    printf("a team takes %lld B of PE %d\n", (long long)more / ALIVE, me);
    CHECK_OK(gshmem_barrier_all());
    for (int i = ALIVE - 4; i < ALIVE; i++) {
        if (!is_member(i))
            continue;
        try_team(i, LARGE);
        try_context(i);
    }

    /* some of them anew, by other PEs */
    for (int i = 0; i < ALIVE; i += 5) {
        if (is_member(i))
            CHECK_OK(gshmem_team_destroy(team[i]));
    }
    CHECK_OK(gshmem_barrier_all());
    if (is_member(0))
        CHECK_EQ(gshmem_team_n_pes(team[0]), -1);
    for (int i = 0; i < ALIVE; i += 5) {
        CHECK_OK(make(i));
        if (is_member(i) && i % 100 == 0)
            try_team(i, SMALL);
    }
    for (int i = 0; i < ALIVE; i++) {
        if (is_member(i))
            CHECK_OK(gshmem_team_destroy(team[i]));
    }
    /* lower slots are taken again: those have more memory */
    for (int i = 0; i < 2; i++)
        CHECK_OK(make(i));
    CHECK(team[1] < 256);
    for (int i = 0; i < 2; i++)
        CHECK_OK(gshmem_team_destroy(team[i]));
}

/* No more than a hundred at a time. */
static void try_many(void)
{
    for (int made = 0; made < 10000; made += 100) {
        for (int i = 0; i < 100; i++)
            CHECK_OK(make(i));
        if (made % 1000 == 0)
            try_team(made / 1000 * 4, SMALL);
        for (int i = 0; i < 100; i++) {
            if (is_member(i))
                CHECK_OK(gshmem_team_destroy(team[i]));
        }
    }
}

static gshmem_team_t make_own(void)
{
    gshmem_team_uniqueid_t id;
    gshmem_team_t own;

    CHECK_OK(gshmem_team_get_uniqueid(&id));
    CHECK_OK(gshmem_team_create(id, 1, 0, NULL, 0, &own));
    return own;
}

static gshmem_status_t make_by_id(gshmem_team_t *made)
{
    static gshmem_team_uniqueid_t id, mine;

    if (me == 0)
        CHECK_OK(gshmem_team_get_uniqueid(&mine));
    CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, &id, &mine, sizeof id, 0));
    return gshmem_team_create(id, n, me, NULL, 0, made);
}

static void check_none(gshmem_status_t status, const gshmem_team_t *made)
{
    const char *line;

    CHECK_EQ(status, GSHMEM_ERR_MEMORY);
    CHECK_EQ(gshmem_last_error(&line), GSHMEM_ERR_MEMORY);
    CHECK_HAS(line, "no team slot is free on all members: a PE can be in 4096 teams at a time");
    CHECK_EQ(*made, GSHMEM_TEAM_INVALID);
}

/* As many as there can be, and one more, all on the same members; then those that have slots are not
 * the same: no slot is free on all, though each has many. */
static void try_full(void)
{
    static long sync[ACTIVE_SET_WORDS];
    gshmem_team_t more, set;
    int made = 0;

    for (; made <= MOST; made++) {
        const gshmem_status_t status =
            gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[made]);
        if (status) {
            check_none(status, &team[made]);
            break;
        }
    }
    CHECK_EQ(made, MOST);
    try_team(0, SMALL);
    try_team(MOST - 1, SMALL);
    check_none(make_by_id(&more), &more);
    /* an active set has slots of its own */
    if (me < 2) {
        CHECK_OK(gshmem_path_active_set(0, 0, 2, sync, "test", &set));
        CHECK_OK(gshmem_team_sync(set));
        CHECK_OK(gshmem_path_leave_set(set));
    }
    for (int i = 1000; i < 1004; i++)
        CHECK_OK(gshmem_team_destroy(team[i]));
    for (int i = 1000; i < 1004; i++)
        CHECK_OK(i % 2 ? make_by_id(&team[i])
                       : gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[i]));
    try_team(1003, SMALL);
    while (made > 0)
        CHECK_OK(gshmem_team_destroy(team[--made]));

    static gshmem_team_t own[MOST];
    for (; made < MOST; made++)
        own[made] = make_own();
    for (int i = 0; i < MOST; i++) {
        if ((own[i] & 1) == (me & 1))
            CHECK_OK(gshmem_team_destroy(own[i]));
    }
    check_none(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &more), &more);
    check_none(make_by_id(&more), &more);
    /* one is free on all PEs, in the tenth range */
    for (int i = 0; i < MOST; i++) {
        if (own[i] == 9 * 256 + 8 && !(me & 1))
            continue; /* it has been destroyed */
        if (own[i] == 9 * 256 + 8)
            CHECK_OK(gshmem_team_destroy(own[i]));
    }
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[0]));
    CHECK_EQ(team[0], 9 * 256 + 8);
    try_team(0, SMALL);
    CHECK_OK(gshmem_team_destroy(team[0]));
    CHECK_OK(make_by_id(&team[0]));
    CHECK_EQ(team[0], 9 * 256 + 8);
    /* when all ranges have been tried, the next call begins with the first one again */
    check_none(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &more), &more);
    CHECK_OK(gshmem_team_destroy(team[0]));
    for (int i = 0; i < MOST; i++) {
        if ((own[i] & 1) != (me & 1) && own[i] != 9 * 256 + 8)
            CHECK_OK(gshmem_team_destroy(own[i]));
    }
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[0]));
    CHECK(team[0] < 256);
    CHECK_OK(gshmem_team_destroy(team[0]));
}

/* What this process has from malloc; 0 where the C library does not say. */
static int64_t bytes_allocated(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 info = mallinfo2();

    return (int64_t)(info.uordblks + info.hblkhd);
#else
    return 0;
#endif
}

/* Teams between nodes, beyond those that have inboxes: once each has had small collectives, what it keeps for
 * them is a cache line for each member on another node. */
/* Of a broadcast a team without an inbox fetches the root's slot, and no other: it keeps room for
 * one until the next round. */
static void try_one_slot(int first, int end)
{
    enum { BYTES = 2048, ROOM = 256 };
    const int64_t before = bytes_allocated();

    for (int i = first; i < end; i++) {
        for (size_t k = 0; k < BYTES / sizeof *source; k++)
            source[k] = value(i, me, k);
        CHECK_OK(gshmem_broadcastmem(team[i], dest, source, BYTES, 0));
        const int root = gshmem_team_translate_pe(team[i], 0, GSHMEM_TEAM_WORLD);
        for (size_t k = 0; k < BYTES / sizeof *source; k++)
            CHECK_EQ(dest[k], value(i, root, k));
    }
    const int64_t more = (bytes_allocated() - before) / (end - first);
    if (more > BYTES + ROOM)
        CHECK_FAIL("a broadcast of %d B keeps %lld B", BYTES, (long long)more);
}

static void try_remote(void)
{
    enum { TEAMS = 500, LINE = 64, ROOM = 128 }; /* ROOM: for what the C library needs itself */
    const int64_t away = n - gshmem_team_n_pes(GSHMEM_TEAM_HOST);
    int64_t before = 0;

    CHECK(away > 0);
    for (int i = 0; i < TEAMS; i++)
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team[i]));
    for (int i = 0; i < TEAMS; i++) {
        if (i == TEAMS / 2)
            before = bytes_allocated();
        for (int round = 0; round < 2; round++)
            try_team(i, 1);
    }
    const int64_t more = (bytes_allocated() - before) / (TEAMS / 2);
    if (more > away * LINE + ROOM)
        CHECK_FAIL("collectives of a team with %lld remote members keep %lld B", (long long)away, (long long)more);
    printf("collectives of a team with %lld remote members keep %lld B\n", (long long)away, (long long)more);
    try_one_slot(TEAMS / 2, TEAMS);
    /* larger ones are right, and keep nothing more */
    for (int i = TEAMS / 2; i < TEAMS; i++)
        try_team(i, i % 2 ? SMALL : LARGE);
    for (int i = TEAMS / 2; i < TEAMS; i++)
        try_team(i, 1);
    const int64_t after = (bytes_allocated() - before) / (TEAMS / 2);
    if (after > 2 * (away * LINE + ROOM))
        CHECK_FAIL("after larger ones it is %lld B", (long long)after);
    for (int i = 0; i < TEAMS; i++)
        CHECK_OK(gshmem_team_destroy(team[i]));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    CHECK_OK(gshmem_init());
    n = gshmem_n_pes();
    me = gshmem_my_pe();
    CHECK(n <= PES_MOST);
    if (strcmp(what, "alive") == 0)
        try_alive();
    else if (strcmp(what, "many") == 0)
        try_many();
    else if (strcmp(what, "full") == 0)
        try_full();
    else if (strcmp(what, "remote") == 0)
        try_remote();
    else
        CHECK_FAIL("thousands alive|many|full|remote");
    CHECK_OK(gshmem_finalize());
    return 0;
}
