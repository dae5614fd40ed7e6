/* OpenSHMEM's profiling interface: every function by a second name, pshmem_… (p before names
 * without shmem_), for tools that define shmem_… themselves and call these.
 *
 * In the library, the names shmem_… are weak and stand for the same functions. A tool comes before
 * the library in the link, or by LD_PRELOAD. It then sees the calls of programs that were compiled
 * with inline forms, too. Names without a type (of C11 and C++) call these functions. They have no
 * second name. */
#ifndef PSHMEM_H
#define PSHMEM_H

#include "gshmem_names_begin.h"

#ifndef SHMEM_NO_INLINE
#define SHMEM_NO_INLINE /* in C++ a tool cannot define a function that is inline */
#endif
#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "shmem/profiling.h"

#ifdef __cplusplus
}
#endif

#include "gshmem_names_end.h"
#endif
