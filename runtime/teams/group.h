/* A group: members whose memory is mapped here, and how they synchronize.
 *
 * Every collective of the PEs of one node consists of rounds. In a round every member arrives with
 * a slot (struct note), in which its data is, and leaves when all have arrived. Then each may read
 * all slots. A round is a barrier, carries small data, and shows whether all members make the same
 * call.
 *
 * Knows nothing of teams, of handles except the team's for reports, or of addresses of the user. */
#ifndef GSHMEM_RUNTIME_TEAMS_GROUP_H
#define GSHMEM_RUNTIME_TEAMS_GROUP_H

#include <stdbool.h>

#include "gshmem/base.h"
#include "runtime/teams/sync.h"

struct group;
struct internode;
struct node;
struct rooted_look;
struct wait;

/* What a round carries; `brought` of the group is the number of bytes of each. Rounds alternate
 * between the halves of an inbox, as they do between slots, and for the same reason (sync.h). */
enum payload {
    PAYLOAD_NOTES, /* every member's slot, to all */
    PAYLOAD_ONE,   /* the slot of one member */
    PAYLOAD_HOSTS, /* a part of each node's, to all, which its members make together */
    PAYLOAD_PAIRS, /* a part of each member's for each member on another node */
};

/* What a group whose members are on several nodes does in its own way: internode_prepare. */
struct group_remote {
    struct note *(*note)(const struct group *g);              /* as group_note, */
    const struct note *(*read)(const struct group *g, int i); /* group_read */
    const struct note *(*signed_by)(const struct group *g, int i); /* internode_signed */
    gshmem_status_t (*farewell)(struct group *g, const char *call); /* and group_farewell */
    bool (*is_away)(const struct group *g, int i); /* member i is on another node */
    /* The group is broken, with that failure, which was logged. */
    gshmem_status_t (*break_off)(struct group *g, gshmem_status_t status, const char *call);
    void (*free)(struct internode *f);
    /* rooted.h: whether the coming round can be rooted, with so many bytes, as far as this kind of
     * group decides; where in root i's memory, or in that of this node's leader, more than
     * ROOTED_BYTES of its data are; and what its members do beside others: when they arrive, when
     * the root has brought data, and in a long wait for a root. */
    bool (*can_be_rooted)(const struct group *g, size_t bytes);
    char *(*rooted_data)(const struct group *g, int i);
    void (*arrive)(struct group *g, uint32_t signature);
    gshmem_status_t (*give)(struct group *g, uint64_t word, const void *data, size_t bytes,
                            const char *call);
    gshmem_status_t (*look)(struct group *g, int root, struct rooted_look *l, const char *call);
};

/* What a member knows that waits for a root in a group on several nodes. */
struct rooted_look {
    uint64_t mine;    /* the word that it waits for */
    uint64_t found;   /* the root's word of this round, where that is another one; 0: not known */
    uint64_t next_ns; /* how long it waits until it asks the root, the next time */
    const struct wait *wait;
};

/* Of the members of one node, whose rounds are parts of the rounds of a group on several nodes. */
struct outer {
    const struct group *group; /* that group; NULL: this is no such part */
    uint32_t round; /* its number there, */
    bool entering;  /* while the members enter it, and some may be in a rooted round instead: */
    bool turned;    /* they were (internode_rooted.c) */
};

struct group {
    int n;
    int my;
    bool oversubscribed;             /* members share CPUs */
    int cpus;                 /* how many CPUs */
    uint32_t round;           /* how many rounds have begun; the same on all members */
    uint32_t full;            /* how many of them were full ones, which use the two slots in turn */
    uint32_t earlier;         /* a hash of the rooted rounds since the last full one: rooted.h */
    uint32_t mixed;           /* what it was before the last full round */
    _Atomic int awaited;      /* the root that a rooted round waits for, as a member; -1: none */
    _Atomic(const char *) under_way; /* the call whose round is in progress, for other threads; or
                                        NULL */
    gshmem_status_t broken;   /* the reason why there can be no more rounds: a member has died, or
                                 the job has ended */
    uint32_t losses;          /* failures in the job when this group last checked for failed
                                 members */
    struct internode *internode;          /* if members are on several nodes: internode.h; otherwise
                                             NULL */
    const struct node *node;       /* the job's */
    const struct group_remote *remote; /* the same: its functions */
    struct outer outer;
    int leader; /* if members are on several nodes: the first one on this node */
    size_t brought; /* bytes of a slot's data that the coming round's readers need; internode groups
                       need to know it before the slot is filled in */
    gshmem_team_t team;       /* for reports */
    uint64_t block;           /* the offset of each member's block in its system memory */
    int range;                /* where the search for the slot of a new team begins; the same on all
                                 members: slots.c */
    uint32_t made; /* for the trace: tells this group from earlier ones that had its slot; the same
                      on all members; 0: predefined, or of an active set */
    const int *pe;            /* [n]: PEs of the job, for reports */
    gshmem_status_t (*meet)(struct group *g, uint32_t signature, const char *call);
    gshmem_status_t (*traced)(struct group *g, uint32_t signature, const char *call); /* if rounds
                                                       go into the trace: what `meet` calls */
    struct team_sync *sync[]; /* [n]: each member's block, mapped here; NULL: on another node */
};

/* Part of a signature, beside the hash: the collective, so that a mismatch can be explained. */
enum collective {
    COLLECTIVE_REFUSED, /* arguments were refused: the member arrives all the same, so that none
                           waits for it */
    COLLECTIVE_SYNC,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_COLLECT,
    COLLECTIVE_FCOLLECT,
    COLLECTIVE_ALLTOALL,
    COLLECTIVE_ALLTOALLS,
    COLLECTIVE_REDUCE,
    COLLECTIVE_REDUCESCATTER,
    COLLECTIVE_INSCAN,
    COLLECTIVE_EXSCAN,
    COLLECTIVE_SPLIT,
    COLLECTIVE_DESTROY,
    COLLECTIVE_AGREE,
    COLLECTIVE_FINALIZE,
    COLLECTIVE_COUNT
};

static_assert(COLLECTIVE_COUNT <= 16, "a collective takes 4 bits of a signature");

/* 32 bits: 27 of a hash of the arguments, 4 of the collective, and a bit that is always set. */
static inline uint32_t signature_make(enum collective what, uint64_t hash)
{
    return (uint32_t)(hash >> 37) << 5 | (uint32_t)what << 1 | 1;
}

#define GROUP_FINALIZE signature_make(COLLECTIVE_FINALIZE, 0)
/* In place of a signature: two that differ, or one that is not known. */
enum { GROUP_MIXED = 2 };

static inline uint64_t signature_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* n members, of which this PE has number my. cpus: as in the group, 0 if each member has a CPU of
 * its own. pe must outlive the group. The caller fills in team and sync, with blocks in a clean
 * state. NULL: out of memory. */
struct group *group_create(int n, int my, const int *pe, int cpus);
void group_destroy(struct group *g);
/* From now on its rounds go into the trace. */
void group_trace(struct group *g);

/* The three algorithms of a round; runtime/collectives/table.c says which is used when. */
gshmem_status_t meet_flat(struct group *g, uint32_t signature, const char *call);
gshmem_status_t meet_dissemination(struct group *g, uint32_t signature, const char *call);
gshmem_status_t meet_central(struct group *g, uint32_t signature, const char *call);

/* This member's slot in the coming round, to be filled in before group_meet; in internode groups
 * `brought` bytes of it. The round itself writes `word`. */
static inline struct note *group_note(struct group *g)
{
    return g->internode ? g->remote->note(g) : &g->sync[g->my]->note[(g->full + 1) & 1];
}

/* A member's slot of the last full round; valid until the next group_meet. */
static inline const struct note *group_read(const struct group *g, int i)
{
    return g->internode ? g->remote->read(g, i) : &g->sync[i]->note[g->full & 1];
}

/* At a full round of which that is a factor: words of rooted rounds before it are not needed any
 * more, and would be taken for those of rounds 2^32 later. */
enum { ROOTED_REMEMBERED = 1 << 24 };
void rooted_forget(struct group *g);

/* One round. Members that arrive with different signatures all get GSHMEM_ERR_MISMATCH, and the
 * group continues; after any other failure it is broken. */
static inline void group_begin_round(struct group *g, const char *call)
{
    g->round++;
    g->full++;
    /* relaxed, as below: another thread that reads it only tests whether it is NULL */
    atomic_store_explicit(&g->under_way, call, memory_order_relaxed);
}

static inline gshmem_status_t group_end_round(struct group *g, gshmem_status_t status)
{
    atomic_store_explicit(&g->under_way, NULL, memory_order_relaxed);
    return status;
}

/* The signature of a full round, which differs between members whose rooted rounds before it
 * differed. That of finalize stays, since others look for it (agree.c). */
static inline uint32_t group_sign(struct group *g, uint32_t signature)
{
    g->mixed = g->earlier;
    g->earlier = 0;
    if (signature == COLLECTIVE_REFUSED || signature == GROUP_FINALIZE)
        return signature;
    return signature ^ (g->mixed & ~(uint32_t)31);
}

static inline gshmem_status_t group_meet(struct group *g, uint32_t signature, const char *call)
{
    group_begin_round(g, call);
    if (GSHMEM_UNLIKELY(g->earlier | g->mixed))
        signature = group_sign(g, signature);
    const gshmem_status_t status = group_end_round(g, g->meet(g, signature, call));
    if (GSHMEM_UNLIKELY(!(g->round & (ROOTED_REMEMBERED - 1))))
        rooted_forget(g);
    return status;
}

/* The call whose round is in progress; NULL: there is none. */
static inline const char *group_under_way(const struct group *g)
{
    return atomic_load_explicit(&g->under_way, memory_order_relaxed);
}

/* For a member whose arguments were refused with this status, before its round: takes part in the
 * round, so that the others do not wait for it but fail, too. Returns the status. */
gshmem_status_t group_refuse(struct group *g, const char *call, gshmem_status_t status);
/* Before a call's first round: the failure of a call on a group that is broken, or that is found to
 * be broken here, since a member has failed that may still run and take part. */
gshmem_status_t group_check(struct group *g, const char *call);

/* After a round: logs which member's signature this one's differs from; returns
 * GSHMEM_ERR_MISMATCH. */
gshmem_status_t group_explain_mismatch(struct group *g, uint32_t signature, const char *call);
/* The same where it is known that member i differs, and has that signature; noted: the value of its
 * slot, if it is on another node, or 0. */
gshmem_status_t group_explain_difference(struct group *g, uint32_t signature, int i,
                                         uint32_t theirs, uint32_t noted, const char *call);

/* ---- rooted.c: what a full round has to know of rooted ones ---- */

static_assert((ROOTED_EVERY & (ROOTED_EVERY - 1)) == 0, "counters of rounds wrap");

/* Whether a round of that number can be rooted. */
static inline bool rooted_is_allowed(uint32_t round)
{
    return (round & (ROOTED_EVERY - 1)) != 0;
}

/* For a member that has waited for long in a full round: whether another member has arrived at a
 * rooted round instead. */
bool rooted_instead(const struct group *g);
/* Then the full round, whose signature that is, ends as a rooted one. Logs what another member has
 * called; returns GSHMEM_ERR_MISMATCH. */
gshmem_status_t rooted_turn(struct group *g, uint32_t signature, const char *call);
/* Whether the root of the rooted round that is under way has brought its data. */
bool rooted_has_come(const struct group *g, int root);
/* The offset, in a root's system memory, of the word that it writes in the latest round. */
size_t rooted_word_offset(const struct group *g);

/* ---- Ends ---- */

/* The last round of a group: on return no other member accesses this one's block any more, so that
 * it can be cleared and used by another team. */
gshmem_status_t group_farewell(struct group *g, const char *call);

/* Whether member i of the job's group, which is on this node, has reached COLLECTIVE_FINALIZE: the
 * value in its slot, or 0. */
int group_left(const struct group *g, int i);
/* The offset, in a member's system memory, of the word of its slot in this group's latest round, or
 * of what it brings as its root; and the word of the slot of a member on this node. */
size_t group_word_offset(const struct group *g);
uint64_t group_word(const struct group *g, int i);
/* The member whose data a rooted round waits for; -1: all are waited for. For other threads. */
static inline int group_awaited(const struct group *g)
{
    return atomic_load_explicit(&g->awaited, memory_order_relaxed);
}
/* Whether a member on this node has arrived at the latest round. */
bool group_has_come(const struct group *g, int i);
/* Whether a member that has left the job, and has that word, will never arrive at the latest
 * round. */
bool group_cannot_come(const struct group *g, uint64_t word);

/* "PEs 3, 5 and 7 have not arrived at sync"; empty if all have. */
void group_missing(const struct group *g, char *text, size_t size);

#endif
