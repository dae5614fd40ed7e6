/* PEs of hosts that share a machine: whether they have a CPU each, and which is whose turn; nodes that are split. */
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "bootstrap/bootstrap.h"
#include "runtime/node/node.h"
#include "runtime/node/pretend.h"

enum { HOSTS = 2 };

/* PE i of n, on host i / (n / hosts), or dealt out one by one. */
static int turn_among(int i, int n, int hosts, bool dealt, bool apart, int cpus)
{
    int *where = malloc((size_t)n * sizeof *where);
    struct bootstrap b = {.pe = i, .n_pes = n, .n_hosts = hosts, .host = where};
    struct node h = {.n = n / hosts, .index = dealt ? i / hosts : i % (n / hosts),
                     .apart = apart};

    CHECK(where);
    for (int pe = 0; pe < n; pe++)
        where[pe] = dealt ? pe % hosts : pe / (n / hosts);
    node_join_machine(&h, &b);
    CHECK(h.contained);
    int turn = node_turn(&h, &b, cpus);
    free(where);
    return turn;
}

static int turn_of(int i, int n, int hosts, bool dealt, int cpus)
{
    return turn_among(i, n, hosts, dealt, false, cpus);
}

/* Nodes with CPUs of their own, as containers have them: the PEs of each use all of theirs. */
static void nodes_use_all_of_theirs(void)
{
    for (int i = 0; i < 16; i++)
        CHECK_EQ(turn_among(i, 16, HOSTS, false, true, 4), i % 8 / 2);
}

static void members_stay_together(void)
{
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(turn_of(i, 8, HOSTS, false, 2), i / 4);
        CHECK_EQ(turn_of(i, 8, HOSTS, true, 2), i % 2);
        CHECK_EQ(turn_of(i, 8, HOSTS, false, 4), i / 2);
        CHECK_EQ(turn_of(i, 8, HOSTS, true, 4), i % 2 * 2 + i / 4);
        CHECK_EQ(turn_of(i, 8, 4, false, 1), 0);
    }
}

/* More PEs than there are CPUs, however many that is; each host alone would have enough. */
static void all_hosts_count(void)
{
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), n = online * 2 * HOSTS;
    int *where = calloc((size_t)n, sizeof *where);
    struct bootstrap b = {.n_pes = n, .n_hosts = HOSTS, .host = where};
    struct node h = {.n = n / HOSTS};

    CHECK(where);
    for (int pe = 0; pe < n; pe++)
        where[pe] = pe / (n / HOSTS);
    node_join_machine(&h, &b);
    CHECK_EQ(h.sharers, n);
    CHECK_EQ(h.before, 0);
    CHECK(h.oversubscribed && h.cpus <= online);
    CHECK_EQ(node_cpus(&h), h.cpus > 1 ? h.cpus / HOSTS : 1);
    free(where);
}

/* Nodes 0, 1 and 0 again of three, two and one PE; `expected` has the node of each PE. */
static void pretend_to(int parts, int nodes, const int *expected)
{
    enum { PES = 7 };
    static const int host[PES] = {0, 1, 0, 1, 0, 2, 0};
    struct bootstrap b = {.n_pes = PES, .n_hosts = 3, .host = host};
    struct pretended p = {.bootstrap = NULL};

    CHECK_EQ(pretend_nodes(&p, &b, parts), GSHMEM_OK);
    CHECK_EQ(b.n_hosts, nodes);
    CHECK(!b.one_machine);
    for (int pe = 0; pe < PES; pe++)
        CHECK_EQ(b.host[pe], expected[pe]);
    pretend_no_more(&p);
    pretend_no_more(&p);
    CHECK(b.host == host && b.n_hosts == 3 && !b.one_machine);
}

static void nodes_are_split(void)
{
    static const int one[3] = {0};
    struct bootstrap b = {.n_pes = 3, .n_hosts = 1, .host = one};
    struct pretended p = {.bootstrap = NULL};

    pretend_to(1, 3, (int[]){0, 1, 0, 1, 0, 2, 0});
    pretend_to(2, 5, (int[]){0, 1, 0, 2, 3, 4, 3});
    pretend_to(3, 6, (int[]){0, 1, 0, 2, 3, 4, 5});
    pretend_to(1000, 7, (int[]){0, 1, 2, 3, 4, 5, 6});

    CHECK_EQ(pretend_nodes(&p, &b, 2), GSHMEM_OK);
    CHECK(b.one_machine && b.n_hosts == 2); /* the loopback reaches all */
    pretend_no_more(&p);
    CHECK(!b.one_machine && b.n_hosts == 1);
}

int main(void)
{
    CHECK(node_machine() != 0);
    CHECK(node_machine() == node_machine());
    members_stay_together();
    nodes_use_all_of_theirs();
    all_hosts_count();
    nodes_are_split();
    return 0;
}
