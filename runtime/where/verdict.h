/* The last line of a report: the sentence that names the culprit. */
#ifndef GSHMEM_RUNTIME_WHERE_VERDICT_H
#define GSHMEM_RUNTIME_WHERE_VERDICT_H

#include "runtime/where/stack_text.h"
#include "runtime/where/where.h"

void verdict_add(struct text *t, const struct where_job *job, const struct culprit *c,
                 const struct lines *lines);

#endif
