/* gshmemrun's own lines on stderr. */
#ifndef GSHMEM_BOOTSTRAP_RUN_SAY_H
#define GSHMEM_BOOTSTRAP_RUN_SAY_H

#include <stdint.h>
#include <sys/types.h>

/* "gshmemrun: …" and a newline, in one write so that it never mixes with what PEs say. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How a PE has ended that should not have; status: as wait gives it. */
void say_death(int pe, pid_t pid, int status);
/* A PE's program has ended, and what it runs under has not. */
void say_suspect(int pe, pid_t wrapper);
void say_timeout(int64_t ms);

#endif
