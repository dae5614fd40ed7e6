/* A program whose main thread ends by pthread_exit goes on until its last thread has ended, and the C library then
 * calls exit(0). Beside threads of a library there is no last one, and the process would stay for ever, deaf to
 * signals too where these threads block them. So the proxy looks now and then whether the program's threads have all
 * ended, and has exit(0) called in their place. */
#ifndef GSHMEM_PROXY_LEFT_ALONE_H
#define GSHMEM_PROXY_LEFT_ALONE_H

#include <stdbool.h>
#include <stdint.h>

struct left_alone {
    uint64_t looked; /* ns */
    bool seen;       /* at the last look no thread of the program was left */
    bool exits;      /* a thread calls exit(0) */
};

/* Looks twice a second, at most; calls exit(0), in a thread of its own, after two looks that found nobody. */
void left_alone_look(struct left_alone *l, uint64_t now);

#endif
