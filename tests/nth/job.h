/* What the programs of tests/nth share: a call that fails ends the work, and is no defect of its own; a
 * call that succeeds must have done what it says. */
#ifndef TESTS_NTH_JOB_H
#define TESTS_NTH_JOB_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"
#include "shim.h"

enum { JOB_FAILED = 3, JOB_WRONG = 99 };

/* A result that is not what a call that succeeded has promised. */
#define RIGHT(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "nth: WRONG: PE %d, %s:%d: not true: %s\n", gshmem_my_pe(), __FILE__,  \
                    __LINE__, #condition);                                                         \
            _exit(JOB_WRONG);                                                                      \
        }                                                                                          \
    } while (0)

/* Leaves the function with false where a call fails, and says which. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (!job_try((call), #call))                                                               \
            return false;                                                                          \
    } while (0)
/* The same for calls that return an address. */
#define TRY_MEMORY(to, call)                                                                       \
    do {                                                                                           \
        (to) = (call);                                                                             \
        if (!job_try((to) ? GSHMEM_OK : gshmem_last_error(NULL), #call))                           \
            return false;                                                                          \
    } while (0)

static inline bool job_try(gshmem_status_t status, const char *call)
{
    const char *text = "";

    if (!status)
        return true;
    gshmem_last_error(&text);
    fprintf(stderr, "nth: PE %d: %.60s: %s: %s\n", gshmem_my_pe(), call, gshmem_status_name(status),
            text);
    return false;
}

static inline int job_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* The whole of it: what is in the middle, and what is left behind. kernels: other PEs may wait in a
 * kernel, or on a GPU, which nobody tells that this PE gives up: it ends the job. */
static inline int job_main(bool (*work)(int me, int n), bool kernels)
{
    const int before = job_descriptors();

    if (!job_try(gshmem_init(), "gshmem_init"))
        return JOB_FAILED;
    bool fine = work(gshmem_my_pe(), gshmem_n_pes());
    if (!fine && kernels)
        gshmem_global_exit(JOB_FAILED);
    fine &= job_try(gshmem_finalize(), "gshmem_finalize");
    fprintf(stderr, "nth: left %d descriptors\n", job_descriptors() - before);
    if (nth_left)
        nth_left(STDERR_FILENO);
    return fine ? 0 : JOB_FAILED;
}

#endif
