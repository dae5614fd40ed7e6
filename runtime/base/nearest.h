/* Which launcher has started this process, where its job runs inside a job of another: the
 * processes of the inner one find the variables of both. gshmemrun gives its PEs a digest of the
 * other launchers' variables that it has seen itself. In a process where these have changed,
 * another launcher has started a job inside gshmemrun's.
 *
 * Needs nothing but libc: also for gshmemrun, and for the host device. */
#ifndef GSHMEM_BASE_NEAREST_H
#define GSHMEM_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NEAREST_VARIABLE "GSHMEM_RUN_WITHIN"

/* What other launchers have put into an environment: what each of their jobs has of its own. */
struct nearest_traces {
    uint64_t digest;
    uint64_t id; /* of PMI_ID, which says nothing without PMI_PORT */
    bool port;
};

static inline void nearest_add(struct nearest_traces *t, const char *entry)
{
    static const char *const variables[] = {
        "PMIX_NAMESPACE=", "PMIX_RANK=", "PMI_FD=", "PMI_PORT=", "PMI_ID="};
    uint64_t one = 0xcbf29ce484222325; /* FNV-1a */
    size_t i = 0;

    while (i < sizeof variables / sizeof variables[0] &&
           strncmp(entry, variables[i], strlen(variables[i])) != 0)
        i++;
    if (i == sizeof variables / sizeof variables[0])
        return;
    for (const char *c = entry; *c; c++)
        one = (one ^ (unsigned char)*c) * 0x100000001b3;
    t->port |= strcmp(variables[i], "PMI_PORT=") == 0;
    if (strcmp(variables[i], "PMI_ID=") == 0)
        t->id += one;
    else
        t->digest += one; /* in whatever order they are */
}

static inline uint64_t nearest_sum(const struct nearest_traces *t)
{
    return t->digest + (t->port ? t->id : 0);
}

static inline uint64_t nearest_digest(char *const *environment)
{
    struct nearest_traces t = {.digest = 0};

    for (; environment && *environment; environment++)
        nearest_add(&t, *environment);
    return nearest_sum(&t);
}

/* The same for the environment that this process was started with, since MPI_Init puts a launcher's
 * variables into it, too. False: the system does not show it. */
static inline bool nearest_digest_at_start(uint64_t *digest)
{
    FILE *file = fopen("/proc/self/environ", "re");
    struct nearest_traces t = {.digest = 0};
    char *line = NULL;
    size_t room = 0;

    while (file && getdelim(&line, &room, 0, file) > 0)
        nearest_add(&t, line);
    *digest = nearest_sum(&t);
    free(line);
    if (file)
        fclose(file);
    return file != NULL;
}

/* Of a process that has gshmemrun's variables: whether no other launcher has started it since.
 * One that has none of the others' variables any more was started by a wrapper that took them
 * away. */
static inline bool nearest_is_gshmemrun(char *const *environment)
{
    const char *within = getenv(NEAREST_VARIABLE);
    uint64_t digest;

    if (!within)
        return true;
    if (!nearest_digest_at_start(&digest))
        digest = nearest_digest(environment);
    return !digest || strtoull(within, NULL, 16) == digest;
}

/* The descriptor in PMI_FD, where it is an open socket, and its inode; else -1. */
static inline int nearest_pmi_descriptor(ino_t *inode)
{
    const char *text = getenv("PMI_FD");
    struct stat s;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return -1;
    long fd = strtol(text, &end, 10);
    if (*end || fd > 1 << 20 || fstat((int)fd, &s) != 0 || !S_ISSOCK(s.st_mode))
        return -1;
    *inode = s.st_ino;
    return (int)fd;
}

/* The same of PMI-1's launchers, beside PMIx's: launchers close what they have inherited, so that
 * the nearest is the one whose connection is open. */
static inline bool nearest_is_pmi(void)
{
    ino_t inode;

    return nearest_pmi_descriptor(&inode) >= 0;
}

#endif
