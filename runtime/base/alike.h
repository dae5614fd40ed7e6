/* Lines that all PEs of a job are likely to have alike: of a setting that is wrong, of a call that differs. One PE's
 * is enough. Under gshmemrun the PE hands the line to gshmemrun, which writes the first at once and counts those that
 * are equal; under other launchers the first PE of a node writes it, and the others find that it did. */
#ifndef GSHMEM_BASE_ALIKE_H
#define GSHMEM_BASE_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

/* What a PE sends to gshmemrun by the socket in GSHMEM_RUN_LOG: the line as it would be written, of which `prefix`
 * bytes say who writes. */
enum { ALIKE_MAX = 1536 };
struct alike_message {
    unsigned int prefix;
    char line[ALIKE_MAX];
};

/* Before the first line. */
void alike_start(void);

/* True: somebody else has written the line, or will. False: the caller writes it. */
bool alike_take(const char *line, size_t prefix, size_t length);

/* Before a PE gives up: leaves the others of its node the time to find that it wrote their line, too. */
void alike_linger(void);

#endif
