/* Pictures of the results: gshmem-perf --plot. */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include <stdbool.h>

/* What is printed from now on goes to FOLDER/results.csv, and FOLDER/results.txt says what was
 * measured, where and when. false: a line has said why it cannot. */
bool plot_begin(const char *folder, const char *library);
/* Has gshmem-plot draw it. */
bool plot_end(const char *folder);

#endif
