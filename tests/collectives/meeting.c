/* How members meet, with threads for members, so that ThreadSanitizer sees all of it.
 *
 * Each round carries a number from each member; everyone checks everyone's. Members come with skew,
 * and sometimes with different signatures, which all must notice. Some rounds are rooted ones; where
 * one member makes a full round instead, it must notice, and all at the next full round. At the hub each pair of members
 * is told of one another once, to the later one. If the job ends, a round that all have reached has succeeded. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "check.h"
#include "gshmem.h"
#include "runtime/teams/group.h"
#include "runtime/teams/rooted.h"
#include "runtime/collectives/table.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/node/node.h"
#include "runtime/teams/departures.h"

enum { ROUNDS = 3000, MOST = 9 };

typedef gshmem_status_t meet_fn(struct group *g, uint32_t signature, const char *call);

static const struct {
    const char *name;
    meet_fn *meet;
} ways[] = {{"flat", meet_flat}, {"dissemination", meet_dissemination}, {"hub", meet_central}};

static struct team_sync *blocks;
static int pe[MOST];

struct member {
    pthread_t thread;
    struct group *group;
    const char *way;
};

static void come_late(uint32_t round, int my)
{
    uint32_t draw = (round * 2654435761u) ^ ((uint32_t)my * 40503u) * 2246822519u;

    draw ^= draw >> 15;
    if (draw % 32 == 0)
        nanosleep(&(struct timespec){.tv_nsec = draw % 50000}, NULL);
}

static uint64_t value_of(uint32_t round, int i)
{
    return (uint64_t)round * 1000 + (uint64_t)i;
}

static int root_of(uint32_t r, int n)
{
    return (int)(r * 40503u >> 7) % n;
}

/* A rooted round, in which one member may make a full one. *doubt: some member has not noticed. */
static void run_rooted(struct member *m, uint32_t r, int odd_one, bool *doubt)
{
    struct group *g = m->group;
    const int root = root_of(r, g->n);
    const bool differ = odd_one >= 0 && g->n > 1;
    const uint32_t signature = signature_make(COLLECTIVE_BROADCAST, (uint64_t)r << 40);
    uint64_t data[2] = {value_of(r, root), ~value_of(r, root)}, got[2] = {0, 0};
    gshmem_status_t status = GSHMEM_OK, due = GSHMEM_OK;

    come_late(r, g->my);
    CHECK(rooted_can_come(g, sizeof data));
    if (differ && odd_one == g->my) {
        status = group_meet(g, signature_make(COLLECTIVE_SYNC, 0), "meeting");
        due = GSHMEM_ERR_MISMATCH;
    } else if (g->my == root) {
        status = rooted_give(g, signature, data, sizeof data, "meeting");
    } else {
        status = rooted_take(g, root, signature, got, sizeof got, "meeting");
        due = differ && odd_one == root ? GSHMEM_ERR_MISMATCH : GSHMEM_OK;
        if (!due && (got[0] != data[0] || got[1] != data[1]))
            CHECK_FAIL("%s, %d members, round %u: member %d takes %llu of member %d", m->way, g->n,
                       r, g->my, (unsigned long long)got[0], root);
    }
    if (status != due)
        CHECK_FAIL("%s, %d members, rooted round %u of %d: %s", m->way, g->n, r, root,
                   gshmem_status_name(status));
    *doubt = *doubt || (differ && odd_one != root);
}

static void *run(void *argument)
{
    struct member *m = argument;
    struct group *g = m->group;
    bool doubt = false;

    for (uint32_t r = 1; r <= ROUNDS; r++) {
        if (rooted_is_allowed(r) && r / 64 % 4 && r % 7 < 5) { /* now and then there are none */
            run_rooted(m, r, r % 64 == 33 ? (int)(r / 64) % g->n : -1, &doubt);
            continue;
        }
        int odd_one = r % 64 == 0 ? (int)(r / 64) % g->n : -1; /* calls something else */
        bool differ = odd_one >= 0 && g->n > 1;
        struct note *note = group_note(g);
        note->value = value_of(r, g->my);
        memcpy(note->data, &note->value, sizeof note->value);
        come_late(r, g->my);
        uint32_t signature =
            signature_make(odd_one == g->my ? COLLECTIVE_REDUCE : COLLECTIVE_SYNC, r);
        gshmem_status_t status = group_meet(g, signature, "meeting");
        if (status != (differ || doubt ? GSHMEM_ERR_MISMATCH : GSHMEM_OK))
            CHECK_FAIL("%s, %d members, round %u: %s", m->way, g->n, r, gshmem_status_name(status));
        doubt = false;
        come_late(r + 77, g->my);
        for (int i = 0; i < g->n; i++) {
            uint64_t data;
            memcpy(&data, group_read(g, i)->data, sizeof data);
            if (group_read(g, i)->value != value_of(r, i) || data != value_of(r, i))
                CHECK_FAIL("%s, %d members, round %u: member %d reads %llu of member %d", m->way,
                           g->n, r, g->my, (unsigned long long)data, i);
        }
    }
    CHECK_EQ(group_farewell(g, "farewell"), GSHMEM_OK);
    memset(g->sync[g->my], 0, sizeof *g->sync[0]); /* nobody looks at it any more */
    return NULL;
}

static void try_way(int way, int n)
{
    struct member member[MOST];

    for (int i = 0; i < n; i++) {
        member[i].way = ways[way].name;
        member[i].group = group_create(n, i, pe, 0);
        CHECK(member[i].group != NULL);
        member[i].group->meet = ways[way].meet;
        for (int j = 0; j < n; j++)
            member[i].group->sync[j] = &blocks[j];
    }
    for (int i = 0; i < n; i++)
        CHECK_EQ(pthread_create(&member[i].thread, NULL, run, &member[i]), 0);
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pthread_join(member[i].thread, NULL), 0);
        group_destroy(member[i].group);
    }
}

/* The round of member 0, to which the others have come, `missing` of them not, when the job ends. Where they meet by
 * steps, nobody has notified it of the others. */
static gshmem_status_t meet_at_end(int way, int n, int missing, bool differ)
{
    struct group *g = group_create(n, 0, pe, 0);
    const uint32_t signature = signature_make(COLLECTIVE_SYNC, 1);

    CHECK(g != NULL);
    memset(blocks, 0, MOST * sizeof *blocks);
    for (int i = 0; i < n; i++) {
        g->sync[i] = &blocks[i];
        if (i > 0 && i < n - missing)
            blocks[i].note[(g->round + 1) & 1].word = (uint64_t)(g->round + 1) << 32 | signature;
    }
    if (differ)
        blocks[1].note[(g->round + 1) & 1].word ^= 64;
    g->meet = ways[way].meet;
    atomic_store(&job->node->control->aborted, 1);
    const gshmem_status_t status = group_meet(g, signature, "meeting");
    atomic_store(&job->node->control->aborted, 0);
    for (int step = 0, i = 1; ways[way].meet == meet_dissemination && i < n && missing == 0; step++, i *= 2)
        CHECK_EQ(blocks[i].step[step].word[g->round & 1] >> 32, g->round); /* it still notifies the others */
    CHECK_EQ(g->broken, status == GSHMEM_ERR_ABORTED ? status : GSHMEM_OK);
    group_destroy(g);
    return status;
}

/* A round that all have reached has succeeded, also if one of them has died since. */
static void test_end(void)
{
    for (int way = 0; way < 2; way++) {
        for (int n = 2; n <= MOST; n++) {
            CHECK_EQ(meet_at_end(way, n, 0, false), GSHMEM_OK);
            CHECK_EQ(meet_at_end(way, n, 0, true), GSHMEM_ERR_MISMATCH);
            CHECK_EQ(meet_at_end(way, n, 1, false), GSHMEM_ERR_ABORTED);
        }
    }
}

int main(void)
{
    static struct node node;
    static struct job nobody = {.node = &node, .waits = &teams_wait_hooks}; /* waits read it */

    node.control = calloc(1, sizeof *node.control);
    job = &nobody;
    log_set_level(LOG_NONE);
    blocks = aligned_alloc(SYNC_LINE, MOST * sizeof *blocks);
    CHECK(node.control && blocks);
    memset(blocks, 0, MOST * sizeof *blocks);
    for (int i = 0; i < MOST; i++)
        pe[i] = i;
    test_end();
    memset(blocks, 0, MOST * sizeof *blocks);
    for (int way = 0; way < 3; way++) {
        for (int n = 1; n <= MOST; n = n < 5 ? n + 1 : n + 4)
            try_way(way, n);
    }
    free(blocks);
    free(node.control);
    return 0;
}
