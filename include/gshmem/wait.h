/* Waits for this PE's own variables that other PEs update, out of line and for any type.
 *
 * Programs call the typed names of gshmem/typed.h (gshmem_long_wait_until_any, …), which are thin
 * wrappers of these and documented there. type is a 2-, 4- or 8-byte integer. `values` is one value
 * to compare to, or one for each element if vector is not 0. */
#ifndef GSHMEM_WAIT_H
#define GSHMEM_WAIT_H

#include "gshmem/base.h"
#include "gshmem/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* value: widened from the type as C does. */
GSHMEM_API gshmem_status_t gshmem_path_wait_one(enum gshmem_type type, const void *ivar, int cmp,
                                                uint64_t value);
GSHMEM_API int gshmem_path_test_one(enum gshmem_type type, const void *ivar, int cmp,
                                    uint64_t value);

/* Of nelems variables those count whose status is 0 (NULL: all). values: an array of nelems
 * values if vector is 1, one value for all if it is 0. all: every one of them compares so. */
GSHMEM_API gshmem_status_t gshmem_path_wait_all(enum gshmem_type type, const void *ivars,
                                                size_t nelems, const int *status, int cmp,
                                                const void *values, int vector);
GSHMEM_API int gshmem_path_test_all(enum gshmem_type type, const void *ivars, size_t nelems,
                                    const int *status, int cmp, const void *values, int vector);

/* any: the index of one that does, SIZE_MAX if none does or none counts. */
GSHMEM_API size_t gshmem_path_wait_any(enum gshmem_type type, const void *ivars, size_t nelems,
                                       const int *status, int cmp, const void *values, int vector);
GSHMEM_API size_t gshmem_path_test_any(enum gshmem_type type, const void *ivars, size_t nelems,
                                       const int *status, int cmp, const void *values, int vector);

/* some: how many do, at least one after a wait; indices: which. */
GSHMEM_API size_t gshmem_path_wait_some(enum gshmem_type type, const void *ivars, size_t nelems,
                                        size_t *indices, const int *status, int cmp,
                                        const void *values, int vector);
GSHMEM_API size_t gshmem_path_test_some(enum gshmem_type type, const void *ivars, size_t nelems,
                                        size_t *indices, const int *status, int cmp,
                                        const void *values, int vector);

#ifdef __cplusplus
}
#endif
#endif
