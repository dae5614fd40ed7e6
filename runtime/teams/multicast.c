#include "runtime/teams/multicast.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/job/job.h"
#include "runtime/memory/device_heap.h"
#include "runtime/memory/map.h"
#include "runtime/network/wait.h"
#include "runtime/node/node.h"
#include "runtime/teams/group.h"
#include "runtime/teams/team.h"
#include "runtime/teams/observer.h"

struct multicast {
    struct device *device;
    int users; /* teams, and a thread that follows the heap; with the job's lock held */
    int n, me; /* members, and this PE's number among them */
    struct device_multicast map;
    uint64_t reserved; /* bytes at the beginning of heaps that are the library's own */
    uint64_t covered; /* bytes from where heaps begin, the library's own part included */
    bool ended;       /* it could not follow the heap: the covered part stays for those that have an
                         address of it */
    bool whole;       /* no more addresses are given, since an object might extend beyond the
                         covered part */
    int index[];      /* [n]: of the members on this node */
};

/* What PEs send each other in each step. */
struct step {
    uint64_t status; /* of the sender's part */
    struct device_piece piece;
    uint64_t more; /* after the last step: whether the sender's team continues */
};
_Static_assert(sizeof(struct step) <= HANDOVER_LETTER_MAX, "it is a letter");

/* The participants of a step: the members of a team that begins, or all PEs of the node. */
struct talk {
    struct handover *handover;
    const struct handover_circle *circle;
    struct step *step; /* [circle->n] */
    int *fd;
    const int *place; /* [member]: the index of its step; NULL: steps are numbered like members */
    const char *call;
};

/* ---- Whether a team can have multicast ---- */

static bool same_unit(const struct device_card *a, const struct device_card *b)
{
    return memcmp(a->unit, b->unit, sizeof a->unit) == 0;
}

static bool can_have(const struct job *j, const struct team *t)
{
    const struct node_member *member = j->node->control->member;
    const struct device_card *mine = &member[j->node->index].card;

    if (!j->device_heap || t->n_pes < 2)
        return false;
    for (int i = 0; i < t->n_pes; i++) {
        int index = j->node->index_of[t->members[i]];
        if (index < 0 || !member[index].card.multicast || member[index].card.share != mine->share)
            return false;
        for (int k = 0; k < i; k++) {
            if (same_unit(&member[index].card, &member[j->node->index_of[t->members[k]]].card))
                return false;
        }
    }
    return true;
}

/* Whether some team of this node could: the same result on all of its PEs. */
static bool any_can(const struct job *j)
{
    const struct node_member *member = j->node->control->member;
    const struct device_card *first = NULL;

    for (int i = 0; i < j->node->n; i++) {
        if (!member[i].card.multicast)
            continue;
        if (first && !same_unit(first, &member[i].card))
            return true;
        first = &member[i].card;
    }
    return false;
}

/* ---- One more piece, in three steps, each when all have completed the one before ---- */

static const struct step *step_of(const struct talk *k, int member)
{
    return &k->step[k->place ? k->place[member] : member];
}

/* Whether all members could; false, too, if a PE is gone. m is NULL for a PE that is not a
 * member. */
static bool multicast_tell(const struct talk *k, const struct multicast *m, const struct step *mine)
{
    bool all = !handover_exchange(k->handover, k->circle, k->call, mine, sizeof *mine,
                                  mine->piece.fd, k->step, k->fd);

    if (!all) { /* no PE continues */
        memset(k->step, 0, (size_t)k->circle->n * sizeof *k->step);
        return false;
    }
    k->step[k->circle->index] = *mine;
    for (int i = 0; m && i < m->n; i++)
        all &= !step_of(k, i)->status;
    return all && m;
}

static void close_fds(const struct talk *k)
{
    for (int i = 0; i < k->circle->n; i++) {
        if (k->fd[i] >= 0)
            close(k->fd[i]);
        k->fd[i] = -1;
    }
}

/* The first member makes an object for the next piece, if all members have the same piece next. */
static bool offer(struct job *j, struct multicast *m, const struct talk *k, uint64_t end,
                  struct device_piece *piece)
{
    struct step own = {.piece = {.fd = -1}};
    bool all;

    if (m && !m->ended && m->covered < end)
        own.piece = (struct device_piece){
            .offset = m->covered, .bytes = device_heap_piece(j->device_heap, m->covered), .fd = -1};
    if (m && m->me == 0 && own.piece.bytes)
        own.status =
            (uint64_t)m->device->ops->multicast_offer(m->device, &m->map, m->n, &own.piece);
    all = multicast_tell(k, m, &own);
    if (own.piece.fd >= 0)
        close(own.piece.fd);
    for (int i = 0; all && i < m->n; i++)
        all = step_of(k, i)->piece.bytes == own.piece.bytes && own.piece.bytes &&
              step_of(k, i)->piece.offset == own.piece.offset;
    if (all) {
        int first = k->place ? k->place[0] : 0;
        *piece = k->step[first].piece;
        piece->fd = k->fd[first];
        k->fd[first] = -1;
    }
    close_fds(k);
    return all;
}

/* PEs that are in no such team take part, too, to learn whether a team continues. */
static bool cover_piece(struct job *j, struct multicast *m, const struct talk *k, uint64_t end)
{
    struct step own = {.piece = {.fd = -1}};
    struct device_piece piece;
    bool more = false, all = offer(j, m, k, end, &piece);

    own.status = GSHMEM_ERR_DEVICE;
    if (all)
        own.status = (uint64_t)m->device->ops->multicast_join(m->device, &m->map,
                                                              m->me == 0 ? NULL : &piece);
    all = multicast_tell(k, m, &own) && all;
    own.status = GSHMEM_ERR_DEVICE;
    if (all)
        own.status = (uint64_t)m->device->ops->multicast_bind(m->device, &m->map,
                                                              device_heap_mine(j->device_heap));
    own.more = all && m->covered + piece.bytes < end;
    all = multicast_tell(k, m, &own) && all;
    if (all)
        m->covered += piece.bytes;
    else if (m && m->covered < end)
        m->ended = true;
    for (int i = 0; i < k->circle->n; i++)
        more |= k->step[i].more && !k->step[i].status;
    return more;
}

static void cover(struct job *j, struct multicast *m, const struct talk *k, uint64_t end)
{
    const bool before = m && m->ended;

    while (cover_piece(j, m, k, end))
        ;
    if (!m || before || !m->ended)
        return;
    m->device->ops->multicast_shrink(m->device, &m->map, m->covered);
    log_info("multicast of %d PEs is given up: it ends at %llu MiB of their heaps", m->n,
             (unsigned long long)m->covered >> 20);
}

/* ---- The multicast object of a team ---- */

static void multicast_let_go(struct multicast *m)
{
    m->device->ops->multicast_close(m->device, &m->map);
    free(m);
}

static struct multicast *multicast_open_one(struct job *j, const struct team *t)
{
    struct multicast *m = calloc(1, sizeof *m + (size_t)t->n_pes * sizeof m->index[0]);

    if (!m)
        return NULL;
    *m = (struct multicast){.device = j->device, .users = 1, .n = t->n_pes, .me = t->my_pe,
                             .reserved = j->map->segment[SEGMENT_DEVICE].reserved};
    for (int i = 0; i < t->n_pes; i++)
        m->index[i] = j->node->index_of[t->members[i]];
    if (!j->device->ops->multicast_open(j->device, device_heap_span(j->device_heap), &m->map))
        return m;
    free(m);
    return NULL;
}

/* What members exchange first. */
struct greeting {
    struct handover_address address; /* without a name: this member cannot */
    uint64_t everywhere;             /* how much memory it knows to exist */
};

/* One round of the team. False: some member cannot. */
static bool multicast_greet(struct team *t, const struct greeting *mine,
                            struct handover_address *address, uint64_t *end)
{
    struct group *g = t->group;
    bool all = true;

    g->brought = sizeof *mine;
    memcpy(group_note(g)->data, mine, sizeof *mine);
    if (group_meet(g, signature_make(COLLECTIVE_SPLIT, sizeof *mine), "multicast"))
        return false;
    *end = mine->everywhere;
    for (int i = 0; i < t->n_pes; i++) {
        struct greeting theirs;
        memcpy(&theirs, group_read(g, i)->data, sizeof theirs);
        all &= theirs.address.name_bytes[0] != 0;
        if (theirs.everywhere < *end)
            *end = theirs.everywhere;
        if (address)
            address[i] = theirs.address;
    }
    return all;
}

/* The members have sockets of their own, which exist for this only. */
static struct multicast *multicast_make(struct job *j, struct team *t)
{
    const size_t n = (size_t)t->n_pes;
    struct greeting mine = {.everywhere = device_heap_filled(j->device_heap)};
    struct step *step = calloc(n, sizeof *step + sizeof(struct handover_address) + sizeof(int));
    struct handover_address *address = (struct handover_address *)(step ? step + n : NULL);
    struct handover handover = {.fd = {-1, -1}};
    struct multicast *m = step ? multicast_open_one(j, t) : NULL;
    uint64_t end;

    if (m && !handover_open(&handover, t->n_pes))
        mine.address = handover.address;
    bool all = multicast_greet(t, &mine, address, &end);
    if (all) {
        const struct handover_circle circle = {t->n_pes, t->my_pe, address, sizeof *address, t->id,
                                                network_await};
        const struct talk k = {&handover, &circle, step, (int *)(address + n), NULL, "multicast"};
        cover(j, m, &k, end);
        m->whole = m->covered >= device_heap_filled(j->device_heap);
    } else if (m) {
        multicast_let_go(m);
        m = NULL;
    }
    handover_close(&handover);
    free(step);
    return m;
}

/* A team of all PEs of the node uses the node's object, whatever the order of its members. */
static struct multicast *find_shared(const struct job *j, const struct team *t)
{
    const struct team *node = j->team[GSHMEM_TEAM_HOST];

    return t->n_pes == j->node->n && node && node != t ? node->multicast : NULL;
}

void multicast_begin(struct job *j, struct team *t)
{
    struct multicast *shared, *m;

    if (!can_have(j, t))
        return;
    shared = find_shared(j, t);
    if (!shared && t->id >= TEAM_RANGE)
        return;
    if (!(m = shared ? shared : multicast_make(j, t)))
        return;
    pthread_mutex_lock(&j->lock);
    if (shared)
        m->users++;
    t->multicast = m;
    j->observer->show_multicast(j, t);
    pthread_mutex_unlock(&j->lock);
    log_info("multicast: team %d of %d PEs has it for %llu MiB of their heaps", t->id, t->n_pes,
             (unsigned long long)multicast_bytes(t) >> 20);
}

static void multicast_drop(struct job *j, struct multicast *m)
{
    pthread_mutex_lock(&j->lock);
    bool last = --m->users == 0;
    pthread_mutex_unlock(&j->lock);
    if (last)
        multicast_let_go(m);
}

void multicast_end(struct job *j, struct team *t)
{
    if (t->multicast)
        multicast_drop(j, t->multicast);
    t->multicast = NULL;
}

void multicast_stop(struct job *j)
{
    TEAM_FOR_ALL (j, i)
        multicast_end(j, j->team[i]);
}

/* ---- Following the heap as it grows and shrinks ---- */

/* The objects that exist, by team slot, which is one of the first range; each counts as used by the
 * caller. */
static void multicast_collect(struct job *j, struct multicast *mine[TEAM_RANGE])
{
    pthread_mutex_lock(&j->lock);
    const struct team *node = j->team[GSHMEM_TEAM_HOST];
    for (int i = 0; i < TEAM_RANGE; i++) {
        const struct team *t = j->team[i];
        bool shared = t && t != node && t->multicast == node->multicast;
        mine[i] = t && !shared ? t->multicast : NULL;
        if (mine[i])
            mine[i]->users++;
    }
    pthread_mutex_unlock(&j->lock);
}

static void show_all(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    TEAM_FOR_ALL (j, i) {
        if (j->team[i]->multicast)
            j->observer->show_multicast(j, j->team[i]);
    }
    pthread_mutex_unlock(&j->lock);
}

/* The slots in which any PE of the node has one. Other threads may make or destroy teams meanwhile:
 * a member that has none any more, or not yet, ends the following for that team, and no PE waits
 * for ever. */
struct slots {
    uint64_t used[TEAM_RANGE / 64];
};
_Static_assert(sizeof(struct slots) <= HANDOVER_LETTER_MAX, "it is a letter");

static bool ask_slots(const struct talk *k, struct multicast *const mine[TEAM_RANGE],
                      struct slots *any)
{
    struct slots own = {.used = {0}}, *theirs = (struct slots *)k->step; /* a step is larger */

    for (int i = 0; i < TEAM_RANGE; i++)
        own.used[i / 64] |= (uint64_t)(mine[i] != NULL) << i % 64;
    if (handover_exchange(k->handover, k->circle, k->call, &own, sizeof own, -1, theirs, k->fd))
        return false;
    close_fds(k);
    *any = own;
    for (int i = 0; i < k->circle->n; i++) {
        for (int w = 0; i != k->circle->index && w < TEAM_RANGE / 64; w++)
            any->used[w] |= theirs[i].used[w];
    }
    return true;
}
_Static_assert(sizeof(struct slots) <= sizeof(struct step), "they take the steps' room");

static void follow_all(struct job *j, struct talk *k, struct multicast *mine[TEAM_RANGE])
{
    const uint64_t end = device_heap_filled(j->device_heap);
    struct slots any;

    if (!ask_slots(k, mine, &any))
        return;
    for (int i = 0; i < TEAM_RANGE; i++) {
        if (!(any.used[i / 64] >> i % 64 & 1))
            continue;
        k->place = mine[i] ? mine[i]->index : NULL;
        cover(j, mine[i], k, end);
        if (mine[i])
            mine[i]->whole = mine[i]->covered >= end;
    }
}

void multicast_follow(struct job *j, const char *call)
{
    struct multicast *mine[TEAM_RANGE];
    struct talk k = {.call = call};

    if (!any_can(j))
        return;
    device_heap_circle(j->device_heap, &k.handover, &k.circle);
    k.step = device_heap_letters(j->device_heap, &k.fd);
    multicast_collect(j, mine);
    follow_all(j, &k, mine);
    show_all(j);
    for (int i = 0; i < TEAM_RANGE; i++) {
        if (mine[i])
            multicast_drop(j, mine[i]);
    }
}

void multicast_cut(struct job *j, uint64_t end)
{
    const uint64_t left = device_heap_kept(j->device_heap, end);
    struct multicast *mine[TEAM_RANGE];

    multicast_collect(j, mine);
    for (int i = 0; i < TEAM_RANGE; i++) {
        if (mine[i] && mine[i]->covered > left)
            mine[i]->covered = left;
    }
    show_all(j); /* before it is released */
    for (int i = 0; i < TEAM_RANGE; i++) {
        if (!mine[i])
            continue;
        mine[i]->device->ops->multicast_shrink(mine[i]->device, &mine[i]->map, mine[i]->covered);
        multicast_drop(j, mine[i]);
    }
}

/* ---- Its address ---- */

uintptr_t multicast_base(const struct team *t)
{
    return t->multicast ? t->multicast->map.base + t->multicast->reserved : 0;
}

uint64_t multicast_bytes(const struct team *t)
{
    const struct multicast *m = t->multicast;

    return m && m->whole && m->covered > m->reserved ? m->covered - m->reserved : 0;
}

void *gshmem_mc_ptr(gshmem_team_t handle, const void *ptr)
{
    const struct team *t = team_find(handle, "gshmem_mc_ptr");
    struct location l;

    if (!t || !t->multicast || !map_find(job->map, ptr, 1, &l) || l.segment != SEGMENT_DEVICE ||
        l.reserved)
        return NULL;
    l.offset -= job->map->segment[SEGMENT_DEVICE].reserved;
    return l.offset < multicast_bytes(t) ? (void *)(multicast_base(t) + l.offset) : NULL;
}
