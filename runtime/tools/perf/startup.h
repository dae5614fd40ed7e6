/* What starting the library cost, noted around the one start of this process. */
#ifndef PERF_STARTUP_H
#define PERF_STARTUP_H

#include <stdbool.h>

/* lib_init, watched; 0 if it worked. by_threads: for several threads that call. */
int startup(bool by_threads);

#endif
