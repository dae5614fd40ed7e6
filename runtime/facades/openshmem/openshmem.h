/* What the files of libgshmem_shmem share. */
#ifndef GSHMEM_RUNTIME_OPENSHMEM_H
#define GSHMEM_RUNTIME_OPENSHMEM_H

#include <stdbool.h>

#define SHMEM_NO_INLINE
#include "gshmem.h"
#include "pshmem.h"
#include "runtime/job/extensions.h"

/* pname is the function; name, weak, is the same until a tool defines its own. */
#define WEAK(name)                                                                                 \
    extern GSHMEM_API __typeof(p##name) name __attribute__((weak, alias("p" #name)));

/* For functions that cannot return a failure. */
static inline void settle(gshmem_status_t status)
{
    if (GSHMEM_UNLIKELY(status != GSHMEM_OK))
        gshmem_raise(status);
}

/* A team by its number; no team for an invalid handle. */
static inline gshmem_team_t team_number(shmem_team_t team)
{
    intptr_t number = (intptr_t)team - 1;

    return number == (gshmem_team_t)number ? (gshmem_team_t)number : GSHMEM_TEAM_INVALID;
}

static inline shmem_team_t team_handle(gshmem_team_t number)
{
    return (shmem_team_t)((intptr_t)number + 1);
}

/* The team of an active set; GSHMEM_TEAM_INVALID after a failure was handed to the error policy. */
static inline gshmem_team_t active_set(const char *call, int start, int log_stride, int size,
                                       long *sync)
{
    gshmem_team_t team = GSHMEM_TEAM_INVALID;

    settle(gshmem_path_active_set(start, log_stride, size, sync, call, &team));
    return team;
}

/* After a collective of an active set. */
static inline void settle_set(gshmem_team_t team, gshmem_status_t status)
{
    gshmem_status_t left = gshmem_path_leave_set(team);

    settle(status ? status : left);
}

/* Whether the names of all functions that exist inline lead to this library. */
bool openshmem_is_own(void);

#endif
