/* Which teams have multicast addresses, for which objects, on (simulated) GPUs that a switch
 * connects; as the heap grows and shrinks, as teams come and go, and where the driver refuses. What
 * is stored there no CPU can see: that is for a GPU.
 *
 *     multicast all|none|first      where it is: for all teams, for that of all PEs not, or there
 * until the heap grows */
#include <stdbool.h>

#include "gshmem.h"
#include "../check.h"

enum { MIB = 1 << 20 };

static int me, n;
static bool all, first;

/* Of all of an object, in one piece. */
static void check_there(gshmem_team_t team, char *object, size_t bytes, bool there)
{
    char *begin = gshmem_mc_ptr(team, object), *end = gshmem_mc_ptr(team, object + bytes - 1);

    CHECK_EQ(begin != NULL, there);
    if (there) {
        CHECK(begin != object);
        CHECK_EQ(end - begin, bytes - 1);
    }
}

static void check_none(char *object)
{
    char *host = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST), local;

    CHECK(host);
    CHECK(!gshmem_mc_ptr(GSHMEM_TEAM_WORLD, &local));
    CHECK(!gshmem_mc_ptr(GSHMEM_TEAM_WORLD, NULL));
    CHECK(!gshmem_mc_ptr(GSHMEM_TEAM_WORLD, host));
    CHECK(!gshmem_mc_ptr(GSHMEM_TEAM_INVALID, object));
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_ARGUMENT);
    CHECK_OK(gshmem_free(host));
}

/* Pairs of neighbours, and all in another order: the latter need no addresses of their own. */
static void teams(char *object)
{
    gshmem_team_t pair = GSHMEM_TEAM_INVALID, turned;
    int order[8];

    for (int i = 0; i < n; i++)
        order[i] = n - 1 - i;
    CHECK_OK(gshmem_team_split_list(GSHMEM_TEAM_WORLD, order, n, NULL, 0, &turned));
    CHECK(gshmem_mc_ptr(turned, object) == gshmem_mc_ptr(GSHMEM_TEAM_WORLD, object));
    if (n >= 4) {
        int begin = me / 2 * 2;
        for (int i = 0; i < n; i += 2) {
            gshmem_team_t made;
            CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, i, 1, 2, NULL, 0, &made));
            if (i == begin)
                pair = made;
        }
        if (all)
            check_there(pair, object, 100, true);
        CHECK(!all || gshmem_mc_ptr(pair, object) != gshmem_mc_ptr(GSHMEM_TEAM_WORLD, object));
        char *large = gshmem_malloc(60 * MIB); /* both grow; teams of one slot do so at once */
        CHECK(large);
        if (all)
            check_there(pair, large, 60 * MIB, true);
        check_there(GSHMEM_TEAM_WORLD, large, 60 * MIB, all);
        CHECK_OK(gshmem_free(large));
        if (all)
            check_there(pair, object, 100, true);
        CHECK_OK(gshmem_team_destroy(pair));
        CHECK(!gshmem_mc_ptr(pair, object));
    }
    CHECK_OK(gshmem_team_destroy(turned));
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    setenv("GSHMEM_ON_ERROR", "return", 1);
    for (int job = 0; job < 2; job++) {
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        all = strcmp(argv[1], "all") == 0 && n > 1;
        first = strcmp(argv[1], "first") == 0 && n > 1;
        char *object = gshmem_malloc(100), *large;
        CHECK(object);
        check_there(GSHMEM_TEAM_WORLD, object, 100, all || first);
        check_there(GSHMEM_TEAM_SHARED, object, 100, all || first);
        check_none(object);
        for (int again = 0; again < 2; again++) {
            CHECK((large = gshmem_malloc(80 * MIB)));
            check_there(GSHMEM_TEAM_WORLD, large, 80 * MIB, all);
            CHECK_OK(gshmem_free(large));
            check_there(GSHMEM_TEAM_WORLD, object, 100, all);
        }
        teams(object);
        CHECK((large = gshmem_malloc(40 * MIB))); /* left to finalize */
        CHECK_OK(gshmem_finalize());
    }
    return 0;
}
