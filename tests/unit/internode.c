/* Teams whose members are on many nodes: which members are where, and what it costs to find out. The cost is counted in
 * instructions, by single steps of a child: it grows with the members, and not with the nodes they are on. */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "bootstrap/bootstrap.h"
#include "runtime/job/job.h"
#include "runtime/node/node.h"
#include "runtime/teams/group.h"
#include "runtime/teams/internode.h"
#include "runtime/teams/internode_parts.h"

enum { MOST = 2048 };

static int pe[MOST], host[MOST], index_of[MOST];
static struct bootstrap bootstrap;
static struct node node = {.index_of = index_of};
static struct job fake;

/* PE i is on node i % nodes; this PE is the one of number `me`. */
static struct group *make(int n, int nodes, int me)
{
    bootstrap.host = host;
    bootstrap.n_hosts = nodes;
    fake.bootstrap = &bootstrap;
    fake.node = &node;
    fake.pe = me;
    job = &fake;
    for (int i = 0; i < n; i++) {
        pe[i] = i;
        host[i] = i % nodes;
        index_of[i] = i % nodes == me % nodes ? i / nodes : -1;
    }
    struct group *g = group_create(n, me, pe, 0);
    CHECK(g);
    return g;
}

static void check_places(int n, int nodes, int me)
{
    struct group *g = make(n, nodes, me);

    CHECK(internode_prepare(g, &fake));
    const struct internode *f = g->internode;
    if (nodes == 1) {
        CHECK(!f);
        group_destroy(g);
        return;
    }
    const int here = (n - me % nodes + nodes - 1) / nodes;
    CHECK_EQ(f->hosts, nodes);
    CHECK_EQ(f->my_host, me % nodes);
    CHECK_EQ(f->n_away, n - here);
    CHECK_EQ(f->local->n, here);
    CHECK_EQ(f->local->my, me / nodes);
    for (int i = 0, before = 0; i < nodes; i++) {
        CHECK_EQ(f->leader[i], i);
        CHECK_EQ(f->first[i], before);
        before += (n - i + nodes - 1) / nodes;
    }
    for (int i = 0; i < n; i++) {
        CHECK_EQ(f->node[i], i % nodes);
        CHECK_EQ(f->place[i], f->first[i % nodes] + i / nodes);
        CHECK_EQ(f->away[i], i % nodes != me % nodes);
    }
    for (int i = 0; i < here; i++)
        CHECK_EQ(f->local_pe[i], me % nodes + i * nodes);
    group_destroy(g);
}

/* ---- Costs ---- */

/* Between its two stops the child does what is counted. */
static void child(int n, int nodes)
{
    struct group *first = make(n, nodes, 0), *g;

    CHECK(internode_prepare(first, &fake)); /* finds functions, and memory */
    g = make(n, nodes, 0);
    raise(SIGSTOP);
    const bool made = internode_prepare(g, &fake);
    raise(SIGSTOP);
    _exit(made ? 0 : 1);
}

/* A skip where no process may be traced. */
static long count(int n, int nodes)
{
    const pid_t pid = fork();
    long steps = 0;
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        child(n, nodes);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        puts("SKIP: no process may be traced here");
        exit(77);
    }
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    do {
        CHECK_EQ(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        steps++;
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    CHECK_EQ(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("%d members on %d nodes: %ld instructions\n", n, nodes, steps);
    return steps;
}

int main(void)
{
    check_places(1, 1, 0);
    check_places(7, 1, 3);
    for (int nodes = 2; nodes <= 9; nodes++) {
        for (int me = 0; me < 9; me++)
            check_places(9, nodes, me);
    }
    check_places(2000, 77, 1999);

    const long few = count(1200, 2), many = count(1200, 600), half = count(600, 300);
    CHECK(few > 1200);
    if (many > 2 * few)
        CHECK_FAIL("600 nodes cost %ld instructions, 2 nodes %ld", many, few);
    if (many > 3 * half)
        CHECK_FAIL("1,200 members cost %ld instructions, 600 members %ld", many, half);
    return 0;
}
