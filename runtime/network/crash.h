/* A PE that crashes says so: its number, the signal, the call stack with source lines, and in a
 * kernel of the host device which kernel, block and thread. Then the process ends as it would have.
 * Signals for which the program, or another library, has a handler are left alone. */
#ifndef GSHMEM_RUNTIME_NETWORK_CRASH_H
#define GSHMEM_RUNTIME_NETWORK_CRASH_H

void crash_begin(int pe);
/* The PE has left the job. It says of a crash all the same, but no more of kernels. */
void crash_end(void);

#endif
