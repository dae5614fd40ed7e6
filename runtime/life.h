/* What the files of a job's life share: start.c, end.c and init.c. */
#ifndef GSHMEM_RUNTIME_LIFE_H
#define GSHMEM_RUNTIME_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "gshmem.h"
#include "runtime/teams/departures.h"

struct bootstrap;
struct job;

/* The process's, which can have several jobs, one after the other: so it hangs from none. */
extern struct life {
    struct bootstrap *starter;      /* kept for the next job of this process */
    _Atomic pid_t owner;            /* the process that initialised; its children are not */
    bool registered;                /* at_exit is registered */
    atomic_bool starting_first;     /* at_exit will be registered when the job that begins now has
                                       begun */
    int ended_at_exit;              /* gshmem_init calls that at_exit has finalized */
    gshmem_status_t status_at_exit; /* the status of that */
    int given_status;               /* the status with which some PE has ended this process's last
                                       job; -1: none has */
} life;

/* ---- layout.c ---- */

/* Refuses objects of this process that were compiled with headers of another layout. */
gshmem_status_t layout_check(void);

/* ---- counts_shown.c ---- */

/* Whether GSHMEM_STATS asks for a report. */
bool counts_wanted(void);
/* At the start, with j->stats: where the report goes. PE 0 warns if it cannot be written there.
 * False: out of memory. */
bool counts_begin(struct job *j);
/* Bytes of a PE's system memory, from which PE 0 gets its counts. */
size_t counts_shown_bytes(int n_pes);
/* Before the round in which all PEs leave: shows this PE's counts. */
void counts_show(struct job *j);
/* After it: PE 0 reports for the job. The PEs must meet again before any of them leaves. */
void counts_report_job(struct job *j);
/* At the end of this PE: its own report, if it wants one and the job has none. */
void counts_report_own(struct job *j);

/* ---- start.c ---- */

gshmem_status_t life_start(const gshmem_init_attr_t *attr);
/* After network_stop. */
void life_free_job(struct job *j);
/* Closes a bootstrap that serves one job. */
void life_let_go_of_starter(struct bootstrap *b);

/* ---- end.c ---- */

gshmem_status_t life_stop(enum departure_way way);
/* That exit status, or 1 if failures that nobody has looked at make it so. */
int life_exit_status(int status);
/* For on_exit. early: registered before a start, for an exit in the middle of it. */
void life_at_exit(int status, void *unused);
void life_at_early_exit(int status, void *unused);

#endif
