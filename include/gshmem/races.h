/* GSHMEM_CHECK=races: what code tells the library that was compiled by gshmemcc --check=races. Not
 * for programs to call. */
#ifndef GSHMEM_RACES_H
#define GSHMEM_RACES_H

#include <stddef.h>

#include "gshmem/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gshmem_followed {
    GSHMEM_FOLLOWED_MODULE, /* this code has kernels */
    GSHMEM_FOLLOWED_PUT,
    GSHMEM_FOLLOWED_PUT_NBI,
    GSHMEM_FOLLOWED_PUT_SIGNAL, /* its data; a GSHMEM_FOLLOWED_SIGNAL comes next */
    GSHMEM_FOLLOWED_PUT_SIGNAL_NBI,
    GSHMEM_FOLLOWED_SIGNAL,
    GSHMEM_FOLLOWED_GET,
    GSHMEM_FOLLOWED_GET_NBI,
    GSHMEM_FOLLOWED_ATOMIC,
    GSHMEM_FOLLOWED_ATOMIC_FETCH, /* a GSHMEM_FOLLOWED_SEEN comes when it is complete */
    GSHMEM_FOLLOWED_FETCH,        /* the same of an atomic that only reads */
    GSHMEM_FOLLOWED_SEEN,
    GSHMEM_FOLLOWED_FENCE,
    GSHMEM_FOLLOWED_QUIET,
    GSHMEM_FOLLOWED_FLUSH,
    GSHMEM_FOLLOWED_ARRIVE, /* pe: the team, of which a collective begins */
    GSHMEM_FOLLOWED_LEAVE,
    GSHMEM_FOLLOWED_READ, /* by a collective, of this PE */
    GSHMEM_FOLLOWED_WRITE,
    GSHMEM_FOLLOWED_SEEN_LATER,  /* when the next quiet is over */
    GSHMEM_FOLLOWED_MODULE_GONE, /* of a GSHMEM_FOLLOWED_MODULE */
};

/* An operation of a kernel, by one thread of those that make it, before it is carried out. there:
 * the object on that PE of the job, by this PE's address; local: the other side, or NULL. */
GSHMEM_API void gshmem_path_follow(enum gshmem_followed what, const void *there, const void *local,
                                   size_t bytes, int pe);

/* The program's own accesses; from: the instruction behind it. */
GSHMEM_API void gshmem_path_loaded(const void *at, size_t bytes, const void *from);
GSHMEM_API void gshmem_path_stored(const void *at, size_t bytes, const void *from);
/* It has loaded a variable by an atomic load, or updates it by an atomic. */
GSHMEM_API void gshmem_path_synchronized(const void *at, size_t bytes);
GSHMEM_API void gshmem_path_updated(const void *at, size_t bytes, const void *from);

#ifdef __cplusplus
}
#endif
#endif
