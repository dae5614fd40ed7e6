/* Every process that this one has started, directly or not.
 *
 * A subreaper inherits what its children leave behind, so that nothing below it gets lost: a
 * process whose parents are all dead is a child of its nearest living subreaper. */
#ifndef GSHMEM_BOOTSTRAP_RUN_DESCENDANTS_H
#define GSHMEM_BOOTSTRAP_RUN_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From now on, orphans below this process become its children. */
bool descendants_adopt(void);

/* The children this process has now; *list is for the caller to free. */
size_t descendants_children(pid_t **list);

/* Sends a signal to every living descendant, except those in spare and their descendants, and those
 * in the process group `but` (0: all). Returns how many there were. */
size_t descendants_signal(int signal, const pid_t *spare, size_t n_spare, pid_t but);

/* Whether that process, or a descendant of it, is about to end: it dumps core, or frees its memory,
 * and is no zombie yet. */
bool descendants_any_ends(pid_t root);

/* Kills and reaps until only those in spare are left, or for some seconds: a process may be one
 * that the kernel does not let die, or that may not be killed. SIGCHLD must be blocked. */
void descendants_end(const pid_t *spare, size_t n_spare);

#endif
