/* Lines that all PEs of a job are likely to log: a setting that is wrong, a call that differs. One
 * PE's line is enough. Under gshmemrun the PE sends the line to gshmemrun, which writes the first
 * at once and counts those that are equal. Under other launchers the first PE of a node writes it,
 * and the others detect that. */
#ifndef GSHMEM_BASE_ALIKE_H
#define GSHMEM_BASE_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

/* What a PE sends to gshmemrun by the socket in GSHMEM_RUN_LOG: the line as it would be written, of
 * which the first `prefix` bytes name the PE. */
enum { ALIKE_MAX = 1536 };
struct alike_message {
    unsigned int prefix;
    char line[ALIKE_MAX];
};

/* Call before the first line. */
void alike_start(void);

/* True: another PE has written the line, or will. False: the caller writes it. */
bool alike_take(const char *line, size_t prefix, size_t length);

/* Call before a PE ends after a failure: gives the others of its node time to detect that it has
 * written their line. */
void alike_linger(void);

#endif
