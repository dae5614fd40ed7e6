/* A PE that crashes says so: its number, the signal, the call stack with source lines, and in a
 * kernel of the host device which kernel, block and thread. Then the process ends as it would have.
 * Signals for which the program, or another library, has a handler are left alone. */
#ifndef GSHMEM_RUNTIME_NETWORK_CRASH_H
#define GSHMEM_RUNTIME_NETWORK_CRASH_H

void crash_begin(int pe);
/* The signals are as they were, unless the program has changed them since. */
void crash_end(void);

#endif
