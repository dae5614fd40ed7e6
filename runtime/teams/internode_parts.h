/* What the parts of rounds between nodes share: internode_make.c (what a group has for them),
 * internode.c (the rounds), internode_fetch.c (slots whose data did not come along),
 * internode_rooted.c (rooted rounds), and internode_come.c (a round in which a member fails). */
#ifndef GSHMEM_RUNTIME_TEAMS_INTERNODE_PARTS_H
#define GSHMEM_RUNTIME_TEAMS_INTERNODE_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/wait.h"
#include "runtime/teams/group.h"

/* Values that leaders send in place of a signature, and that are none (see signature_make): MIXED,
 * the sender has received two different ones; BROKEN, the sender's group is broken for good, with
 * the reason above these bits. */
enum { MIXED = 2, BROKEN = 4, BROKEN_BITS = 3, BROKEN_STATUS = 0xffff };
/* With BROKEN: members differed in the last round that the sender has ended. */
#define BROKEN_DIFFERED (1u << 31)

enum {
    INBOX_TEAMS = 9,         /* teams in the first slots have an inbox */
    INBOX_BYTES = 1024 * 1024, /* an inbox has two halves of that size */
    ROOTED_NODES = 16,         /* with more, a root does not send to each of them */
    ROOTED_ROOM = 4 * 1024,    /* for the data of a rooted round of a team that has an inbox */
};

struct context;

struct internode {
    struct group *local;      /* the members on this node */
    int *local_pe;            /* [local->n]: their PEs of the job */
    int *local_member;        /* [local->n]: their numbers in the group */
    int hosts;
    atomic_int awaited;       /* the member, a leader, whose word this leader waits for; -1: none */
    int my_host;              /* this node among them, in the order of their first members */
    int *leader;              /* [hosts]: each node's leader */
    int *first;               /* [hosts + 1]: how many members are on the nodes before it */
    int *node;                /* [n]: each member's node */
    int *place;               /* [n]: by node, then by number: where its slot is in an inbox */
    int pairs;                /* members of the largest node times the members on other nodes */
    char *inbox[2];           /* the inbox of this node's leader, by parity of the round; NULL:
                                 none */
    struct load {
        enum payload kind;
        int from;
        size_t bytes;
    } coming, last; /* the payload of rounds; `bytes` of the coming one is the group's `brought` */
    bool *away;               /* [n]: members on other nodes */
    int n_away;
    struct fetched {          /* by the last round that fetched slots of members on other nodes */
        char *slots;          /* [n_away]: by node, then by number; NULL: none */
        size_t each, room;    /* bytes of a slot, and of all that there is room for */
        bool one;             /* only one slot was fetched, to the beginning */
    } fetched;
    bool ends;                /* in its last round: who has ended it may use its blocks for another
                                 team */
    bool differed;            /* in the last full round that has ended, members did */
    bool gave;                /* since then this member was the root of a rooted one */
    struct pending pending;   /* requests in flight of rounds */
    struct context *context;  /* the context of the puts and gets of collectives */
    struct pending moving;    /* its requests in flight */
};

/* The bytes of a slot with that much data; and with whole cache lines. */
static inline size_t internode_note_bytes(size_t bytes)
{
    return offsetof(struct note, data) + bytes;
}

static inline size_t internode_whole_lines(size_t bytes)
{
    return (bytes + SYNC_LINE - 1) / SYNC_LINE * SYNC_LINE;
}

/* Gets the slots of the round that ends from the members on other nodes, with `bytes` of their
 * data; one: the slot of member `from` alone. */
gshmem_status_t internode_fetch(struct group *g, bool one, int from, size_t bytes,
                                const char *call);
/* Where the slot of a member on another node is that was fetched. */
struct note *internode_fetched(const struct group *g, int i);
/* A round begins: nobody reads what was fetched any more. Large slots are given back. */
void internode_forget_fetched(struct internode *f);

static inline bool internode_is_broken(uint64_t word)
{
    return ((uint32_t)word & ((1u << BROKEN_BITS) - 1)) == BROKEN;
}

/* A round of leaders. */
struct leaders_round {
    uint32_t *received; /* the signature, or MIXED */
    bool carries;  /* words have payload with them */
    bool all_come; /* a member has failed, and all nodes had come: words are waited for as long as
                      their senders live, */
    bool known;    /* and are not any more where one has failed: what they would say is known */
    uint64_t asked_after; /* ns: how long it waits until it asks for rooted rounds */
    struct wait w;
};

/* Receives the word of that step from the node `distance` before this one. GSHMEM_ERR_MISMATCH:
 * members of other nodes are in a rooted round instead. */
gshmem_status_t internode_receive(struct group *g, int step, int distance, struct leaders_round *r,
                                  const char *call);

/* In the second part of a round, in which a node's members hear from their leader, their meeting
 * has failed with that status. Whether the leader has said how the round ends. */
bool internode_leader_has_ended(const struct group *g, gshmem_status_t met, const char *call);

/* ---- internode_rooted.c ---- */

/* The functions of struct group_remote. */
bool internode_can_be_rooted(const struct group *g, size_t bytes);
char *internode_rooted_data(const struct group *g, int i);
void internode_arrive_rooted(struct group *g, uint32_t signature);
gshmem_status_t internode_give_rooted(struct group *g, uint64_t word, const void *data,
                                      size_t bytes, const char *call);
gshmem_status_t internode_look_rooted(struct group *g, int root, struct rooted_look *l,
                                      const char *call);
/* For a leader that has waited for long in a full round: whether members of other nodes have
 * arrived at a rooted round of that number. */
bool internode_is_rooted_elsewhere(const struct group *g, struct leaders_round *r,
                                   const char *call);
/* How long a wait is, in ns, before another node is asked for the first time. */
enum { ROOTED_ASK_NS = 20 * 1000 * 1000 };
/* Then the full round, whose signature that is, ends as a rooted one on each member. Logs what
 * others have called; returns GSHMEM_ERR_MISMATCH. */
gshmem_status_t internode_turn(struct group *g, uint32_t signature, const char *call);

/* Offsets in a PE's system memory; both are the same on all PEs. */
static inline uint64_t internode_inbox_offset(int slot, unsigned int parity)
{
    return 2 * (uint64_t)TEAM_RANGE * sizeof(struct team_sync) +
           ((uint64_t)slot * 2 + parity) * INBOX_BYTES;
}

static inline uint64_t internode_rooted_offset(int slot, uint32_t round)
{
    const uint64_t number = (round & (ROOTED_EVERY - 1)) - 1;

    return internode_inbox_offset(INBOX_TEAMS, 0) +
           ((uint64_t)slot * (ROOTED_EVERY - 1) + number) * ROOTED_ROOM;
}

#endif
