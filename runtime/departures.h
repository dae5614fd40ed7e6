/* PEs that have left the job, by exit, a return from main or finalize, and now wait for the others: how these see
 * that a call of theirs will never have all it waits for. */
#ifndef GSHMEM_RUNTIME_DEPARTURES_H
#define GSHMEM_RUNTIME_DEPARTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"
#include "runtime/network/network.h"

struct node;
struct job;
struct wait;

enum departure_way {
    LEFT_NOT,
    LEFT_BY_EXIT,
    LEFT_BY_RETURN,
    LEFT_BY_END, /* one of these two */
    LEFT_BY_FINALIZE,
};

/* Of a PE's system memory, behind all else: how each PE of the job has left, of which PE 0's counts. */
size_t departures_system_bytes(int n_pes);

/* This PE leaves: to be called once all that it has sent is complete, before it meets the others. */
void departures_begin(struct job *j, enum departure_way way);
void departures_stop(struct job *j);

/* Of a wait, now and then: fails if it is for a PE that has left before it came to that call. Tells PE 0 that this
 * PE has left, where it is this one that waits long. */
gshmem_status_t departures_check(const struct wait *w, uint64_t now);

/* How a PE has left that has come to COLLECTIVE_FINALIZE; noted: what its note says, in the job's own group. */
enum departure_way departures_way(int pe, uint64_t noted);

/* A wait for one PE fails silently where that has left: it may have done its part first. Who waits looks once more,
 * and says so by this; any other failure stays what it is. */
gshmem_status_t departures_fail_found(const char *call, gshmem_status_t status, int pe);

/* The same of a wait for an update that nobody is left to make; what: which variables it waits for, and for what. */
gshmem_status_t departures_fail_alone(const char *call, gshmem_status_t status, const char *what);

/* Who has left, for a thread that may not wait for an answer. */
struct departures_watch {
    unsigned char *way; /* [PE of the job]: enum departure_way, as far as is known; NULL: nothing is watched */
    unsigned char *table; /* PE 0's, as it comes */
    struct pending pending;
    uint64_t asked;
};

/* Once ended, after network_stop, all is free. false: out of memory. */
bool departures_watch_begin(struct departures_watch *w, int n_pes);
void departures_watch_end(struct departures_watch *w);
/* Looks again; asks: PEs of other hosts are asked about, now and then. Whether more have left than at the last look. */
bool departures_watch_look(struct job *j, struct departures_watch *w, bool asks, uint64_t now);

/* What that failure is: one line. */
gshmem_status_t departures_say(const char *call, int pe, enum departure_way way);
/* The same, with which the job ends unless the error policy has failures returned. */
gshmem_status_t departures_fail(const char *call, int pe, enum departure_way way);

#endif
