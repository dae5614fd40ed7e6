/* One PE in words: what it does, what it waits for, and lists of PEs. */
#ifndef GSHMEM_RUNTIME_WHERE_PE_TEXT_H
#define GSHMEM_RUNTIME_WHERE_PE_TEXT_H

#include "runtime/where/stack_text.h"
#include "runtime/where/where.h"

/* "has died", "have died"; by enum where_state. */
extern const char *const pe_state_text[];
extern const char *const pe_state_many[];

/* "PE 3", "PEs 0-2,4-7". */
void pe_text_add_pes(struct text *t, const int *pe, int n);
/* ", the variable flag", ", the lock that is 8 bytes into the heap"; nothing: the wait is for no
 * object. */
void pe_text_add_object(struct text *t, const struct where_pe *p, const struct where_wait *w);
/* ", for PEs 1,3 and 7 more": whom the wait is for, as far as that is known. */
void pe_text_add_peers(struct text *t, const struct where_job *job, const struct where_wait *w);

/* A PE's line, without its number. */
void pe_text_describe(struct text *t, const struct where_job *job, const struct where_pe *p,
                      const struct lines *lines);
/* "in gshmem_barrier_all, main (a.c:7)"; empty: there is nothing to say. */
void pe_text_describe_briefly(struct text *t, const struct where_pe *p, const struct lines *lines);

#endif
