/* Failures that nobody has looked at: they make the exit status 1 where it would be 0
 * (GSHMEM_UNSEEN). A failure is looked at when its thread calls gshmem_last_error after it, or an
 * error handler gets it. */
#ifndef GSHMEM_BASE_UNSEEN_H
#define GSHMEM_BASE_UNSEEN_H

#include <stddef.h>

/* A failure of this thread, with its line. */
void unseen_add(const char *line);
/* All failures of this thread so far have been looked at. */
void unseen_clear(void);
/* Failures of this thread between these calls are not counted: the library uses another way. */
void unseen_pause(void);
void unseen_resume(void);
/* The last failure of this thread is another thread's from now on, which hands it to the error
 * policy. */
void unseen_hand_over(void);
/* How many there are, of all threads. */
unsigned unseen_count(void);
/* How many there are that this has not returned before. text: the line of the first of them, as far
 * as it fits; empty: it is not known any more. */
unsigned unseen_report(char *text, size_t size);

/* What fail() calls in addition, with the line: GSHMEM_CHECK=strict. NULL: nothing. */
void unseen_set_hook(void (*hook)(const char *line));

#endif
