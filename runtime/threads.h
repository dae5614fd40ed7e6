/* Which threads of this process are the program's. A library's are known by their names: gshmem-… are those of this
 * library, of the host device and of the launcher's client, cuda… those of NVIDIA's driver. A thread of any other
 * library counts as the program's. */
#ifndef GSHMEM_RUNTIME_THREADS_H
#define GSHMEM_RUNTIME_THREADS_H

#include <stdbool.h>

/* How many of the program's threads live, other than this one; -1: the system does not tell. Reads a file of /proc for each thread. */
int threads_of_program(void);

/* Whether any thread other than this one runs or waits for a CPU; true if the system does not tell. */
bool threads_any_runs(void);

/* Whether the main thread has ended, by pthread_exit. */
bool threads_main_has_ended(void);

#endif
