/* Which threads of this process are the program's. Threads of libraries are known by their names:
 * gshmem-… are those of this library, of the host device and of the launcher's client, cuda… those
 * of NVIDIA's driver. A thread of any other library counts as the program's. */
#ifndef GSHMEM_RUNTIME_NODE_THREADS_H
#define GSHMEM_RUNTIME_NODE_THREADS_H

#include <stdbool.h>

/* What the system says of a thread. */
struct threads_one {
    char name[32];
    char state; /* as in /proc: R, S, D, T; Z and X: it has ended */
};

enum threads_found { THREADS_FOUND, THREADS_GONE, THREADS_UNKNOWN };

enum threads_found threads_read(int tid, struct threads_one *out);
bool threads_has_ended(const struct threads_one *t);
/* of_main: the main thread, whose name others begin with: that name says nothing. */
bool threads_is_a_library(const struct threads_one *t, const struct threads_one *of_main);

/* How many of the program's threads live, apart from this one; -1: not known. Reads a file of /proc
 * for each thread. */
int threads_of_program(void);

/* Whether any thread apart from this one runs or waits for a CPU; true if it is not known. */
bool threads_any_runs(void);

/* Whether the main thread has ended, by pthread_exit. */
bool threads_main_has_ended(void);

#endif
