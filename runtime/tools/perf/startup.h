/* What starting the library cost, noted around the one start of this process. */
#ifndef PERF_STARTUP_H
#define PERF_STARTUP_H

int startup(void); /* lib_init, watched; 0 if it worked */

#endif
