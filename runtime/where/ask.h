/* Finds PEs of a user's jobs on this machine, and asks many of them at a time (socket.h). */
#ifndef GSHMEM_RUNTIME_WHERE_ASK_H
#define GSHMEM_RUNTIME_WHERE_ASK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/where/socket.h"

/* A PE that listens. */
struct asked {
    struct sockaddr_un name;
    socklen_t name_bytes;
    uint32_t user; /* whose PE it has to be, or root's */
    pid_t pid;     /* of the process that listens; 0: not known */
    int has_answered;
    struct where_answer answer;
};

/* A question to one PE, and its answer. */
struct asking {
    const struct asked *to;
    enum where_question question;
    struct where_answer answer;
    void *rest;   /* what follows the answer; the caller frees it */
    size_t bytes; /* of rest */
    int complete;
    /* how far it is */
    int fd;
    size_t got;
};

/* All PEs of that user that listen, introduced. The caller frees *out. Takes at most ms. */
size_t ask_find(uint32_t user, int ms, struct asked **out);
/* Asks all at once; those that have not answered within ms are not complete. */
void ask_all(struct asking *all, size_t n, int ms);

#endif
