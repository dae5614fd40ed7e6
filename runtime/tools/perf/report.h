/* How PE 0 prints: aligned text for people, or CSV. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "measure.h"

void report_begin(const struct bench *b);
void report_result(const struct bench *b, const struct benchmark *what, size_t size,
                   const struct result *result);
void report_skip(const struct bench *b, const struct benchmark *what, const char *why);

/* Of PE 0, where its stderr is a terminal: which of how many results is being measured, and about
 * how long the rest takes. */
void report_progress(const struct benchmark *what, size_t size, int row, int rows);
void report_progress_end(void);

#endif
