/* gshmemrun's own lines on stderr. */
#ifndef GSHMEM_BOOTSTRAP_RUN_SAY_H
#define GSHMEM_BOOTSTRAP_RUN_SAY_H

/* "gshmemrun: …" and a newline, in one write so that it never mixes with what PEs say. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
