/* What gshmemrun says of where a job stands: at SIGQUIT, at Ctrl-C, at --timeout. A process of its
 * own puts it together (runtime/where/), so that the launcher serves the PEs meanwhile. */
#ifndef GSHMEM_BOOTSTRAP_RUN_STANDSTILL_H
#define GSHMEM_BOOTSTRAP_RUN_STANDSTILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The most that a report takes; then the job's end waits no longer. A job that has failed is not
 * kept for long. */
enum { STANDSTILL_MS = 2900, STANDSTILL_BRIEF_MS = 500 };

enum standstill {
    STANDSTILL_WHOLE,
    STANDSTILL_BRIEF,           /* one line */
    STANDSTILL_END_INTERRUPTED, /* says nothing: PEs that have left Ctrl-C to gshmemrun are ended
                                   by it */
};

struct server;

/* Starts the process that does it, and writes the report to standard error. job: gshmemrun's
 * process number; pid: of the PEs, 0 for one that has ended; server: knows which have begun. 0: it
 * could not be started. */
pid_t standstill_start(uint32_t job, const pid_t *pid, const struct server *server,
                       enum standstill what);

/* late: that a report was not ready in time; else nothing, since nobody waits for it. */
void standstill_say_cut(uint32_t job, bool late);

#endif
