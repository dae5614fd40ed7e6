/* PEs that have left the job, by exit, a return from main or finalize, and now wait for the others.
 * The others learn here that a call will wait for such a PE in vain. */
#ifndef GSHMEM_RUNTIME_TEAMS_DEPARTURES_H
#define GSHMEM_RUNTIME_TEAMS_DEPARTURES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/network/network.h"

struct node;
struct job;
struct wait;
struct wait_hooks;

enum departure_way {
    LEFT_NOT,
    LEFT_BY_EXIT,
    LEFT_BY_RETURN,
    LEFT_BY_END, /* one of these two */
    LEFT_BY_FINALIZE,
};

extern const struct wait_hooks teams_wait_hooks; /* what waits ask of teams, and of this */

/* What a PE knows of its own departure. */
struct departures {
    size_t table;       /* where PE 0's table is in its system memory */
    atomic_int leaving; /* this PE leaves: an enum departure_way */
    bool *notified;         /* [PE of the node]: PE 0 was notified that it leaves; NULL: it is of
                               this node */
    atomic_bool said_alone; /* a wait that only this PE can end was reported */
};

/* Bytes of a PE's system memory, behind everything else: how each PE of the job has left. PE 0's
 * copy is the valid one. */
size_t departures_system_bytes(int n_pes);

/* Allocates what a departure needs, so that a PE without memory can leave. */
gshmem_status_t departures_start(struct job *j);
void departures_stop(struct job *j);

/* This PE leaves. Call once all that it has sent is complete, before its last round with the
 * others. */
void departures_begin(struct job *j, enum departure_way way);

/* For a wait, at intervals: fails if it waits for a PE that has left before that call. If it is
 * this PE that has left and waits long, notifies PE 0. */
gshmem_status_t departures_check(const struct wait *w, uint64_t now);

/* How a PE has left that has arrived at COLLECTIVE_FINALIZE; noted: the value in its slot of the
 * job's own group. */
enum departure_way departures_way(int pe, uint64_t noted);

/* A wait for one PE fails without a log line if that PE has left, because it may have done its part
 * first. The caller polls once more, and then logs the failure by this function; any other failure
 * stays what it is. */
gshmem_status_t departures_fail_found(const char *call, gshmem_status_t status, int pe);

/* The same for a wait for an update that no PE is left to make; what: the variables and the
 * condition. */
gshmem_status_t departures_fail_alone(const char *call, gshmem_status_t status, const char *what);

/* Which PEs have left, for a thread that may not wait for a response. */
struct departures_watch {
    unsigned char *way; /* [PE of the job]: enum departure_way, as far as it is known; NULL: nothing
                           is watched */
    unsigned char *table; /* PE 0's table, as it arrives */
    struct pending pending;
    uint64_t asked;
};

/* end: call after network_stop; frees everything. false: out of memory. */
bool departures_watch_begin(struct departures_watch *w, int n_pes);
void departures_watch_end(struct departures_watch *w);
/* Polls again; asks: whether to ask about PEs of other nodes, at intervals. Returns whether more
 * PEs have left than at the last poll. */
bool departures_watch_look(struct job *j, struct departures_watch *w, bool asks, uint64_t now);

/* Logs that failure: one line. */
gshmem_status_t departures_say(const char *call, int pe, enum departure_way way);
/* The same, and ends the job unless the error policy has failures returned. */
gshmem_status_t departures_fail(const char *call, int pe, enum departure_way way);

#endif
