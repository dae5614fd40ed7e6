/* The connection of a PMI-1 launcher, PMI_FD, as this process had it when the library was loaded.
 *
 * MPI_Finalize closes it, and the next descriptor of the program may be another socket with that
 * number. So what was there at the start is remembered before anything else runs. */
#ifndef GSHMEM_BOOTSTRAP_INHERITED_H
#define GSHMEM_BOOTSTRAP_INHERITED_H

#include <stdbool.h>

/* Whether the program was started with the connection open, and it still is. Launchers close what
 * they have inherited, so no other launcher stands between that one and this process. */
bool inherited_is_open(void);

/* Whether the program was started with it open, and it has been closed since. */
bool inherited_was_closed(void);

#endif
