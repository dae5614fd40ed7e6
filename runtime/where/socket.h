/* How a job is asked where it stands: each PE listens at a Unix socket of an abstract name, which
 * leaves nothing in any file system and which can be tried one after the other, so that nothing
 * has to list them. Both sides' formats; record.h has what is inside.
 *
 * The PE answers processes of its own user and of root alone, and the asker accepts answers of
 * these alone. */
#ifndef GSHMEM_RUNTIME_WHERE_SOCKET_H
#define GSHMEM_RUNTIME_WHERE_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/where/record.h"

enum {
    WHERE_SOCKETS = 4096, /* names of one user that are tried */
    WHERE_THREADS = 12,   /* threads of a PE whose stacks are shown */
    WHERE_JOB = 64,
};

/* The address number i of that user's PEs. */
static inline socklen_t where_address(struct sockaddr_un *name, uint32_t user, int i)
{
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    int n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "gshmem-where-%u-%d",
                     (unsigned)user, i);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

enum where_question {
    WHERE_WHO = 1, /* struct where_answer alone */
    WHERE_NODE,    /* then for each of `members` a struct where_member */
    WHERE_OTHERS,  /* the same of PEs of other nodes, which the asked PE reads over the network */
    WHERE_STACKS,  /* then a struct where_stacks: of this PE's threads */
};

struct where_ask {
    uint32_t magic, version;
    uint32_t question; /* enum where_question */
    uint32_t unused;
};

struct where_answer {
    uint32_t magic, version;
    int32_t pe, n_pes;
    int32_t node, nodes; /* this PE's node, and how many there are */
    int32_t pid, parent;
    uint32_t members;     /* that follow */
    uint32_t interrupted; /* Ctrl-C has come, and the PE leaves it to gshmemrun to end it */
    uint64_t lasted;      /* ns since the job began on this PE */
    uint64_t number;      /* of the job: with its name the same on all its PEs, and on no others */
    char job[WHERE_JOB];  /* its name, which jobs of some launchers share */
    char program[WHERE_PATH];
};

/* What a PE knows of another. */
enum where_life {
    WHERE_ABSENT, /* it has not joined the job */
    WHERE_LIVES,
    WHERE_HAS_LEFT,
    WHERE_HAS_DIED,
    WHERE_HAS_FAILED, /* in gshmem_init or gshmem_finalize */
    WHERE_SILENT,     /* on another node, and does not answer */
};

struct where_member {
    int32_t pe;
    int32_t life; /* enum where_life */
    int32_t node;
    uint32_t has_page;
    uint64_t now; /* the PE's clock at the copy; 0: it is of another node, and its page tells */
    struct where_page page;
};

struct where_thread {
    int32_t tid;
    char state;   /* as in /proc: R, S, D, T; 0: not known */
    char guessed; /* the frames are what looks like return addresses on its stack */
    char unused[2];
    uint32_t frames;
    uint32_t unused2;
    char name[16];
    uint64_t frame[WHERE_FRAMES];
};

struct where_stacks {
    uint32_t threads;
    uint32_t unused;
    struct where_thread thread[WHERE_THREADS];
};

#endif
