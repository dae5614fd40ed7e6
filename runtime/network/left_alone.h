/* A program whose main thread ends by pthread_exit continues until its last thread has ended; then
 * the C library calls exit(0). While a library has threads there is no last one, and the process
 * would never end, and ignore signals, too, where these threads block them. So the proxy, or where
 * there is none the thread of answer.c, looks at times whether the program's threads have all
 * ended, and has exit(0) called in their place. */
#ifndef GSHMEM_RUNTIME_NETWORK_LEFT_ALONE_H
#define GSHMEM_RUNTIME_NETWORK_LEFT_ALONE_H

#include <stdbool.h>
#include <stdint.h>

struct left_alone {
    uint64_t looked; /* ns */
    bool seen;       /* at the last check no thread of the program was left */
    bool exits;      /* a thread calls exit(0) */
};

/* Checks at most twice a second. Calls exit(0), in a thread of its own, after two checks that found
 * no thread. */
void left_alone_look(struct left_alone *l, uint64_t now);

#endif
