/* Waits for this PE's own variables that other PEs update, out of line and for any type.
 *
 * Programs call the typed names of gshmem/typed.h (gshmem_long_wait_until_any, …), which are thin
 * wrappers of these and documented there. type is a 2-, 4- or 8-byte integer.
 *
 * The functions for several variables take the array ivars of nelems variables. Variable i takes
 * part if status is NULL or status[i] is 0; all others are ignored. A variable that takes part is
 * satisfied if its comparison cmp is true: with values[i] if vector is 1, with values[0] if vector
 * is 0. */
#ifndef GSHMEM_WAIT_H
#define GSHMEM_WAIT_H

#include "gshmem/base.h"
#include "gshmem/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For one variable. value is what C makes of a value of the type when it converts it to 64 bits:
 * sign-extended for a signed type. */
GSHMEM_API gshmem_status_t gshmem_path_wait_one(enum gshmem_type type, const void *ivar, int cmp,
                                                uint64_t value);
GSHMEM_API int gshmem_path_test_one(enum gshmem_type type, const void *ivar, int cmp,
                                    uint64_t value);

/* Waits for each variable that takes part, one after the other, until it is satisfied; test:
 * whether all of them are. */
GSHMEM_API gshmem_status_t gshmem_path_wait_all(enum gshmem_type type, const void *ivars,
                                                size_t nelems, const int *status, int cmp,
                                                const void *values, int vector);
GSHMEM_API int gshmem_path_test_all(enum gshmem_type type, const void *ivars, size_t nelems,
                                    const int *status, int cmp, const void *values, int vector);

/* Waits until one is satisfied, and returns its index; test does not wait. SIZE_MAX if none is
 * satisfied, or none takes part. */
GSHMEM_API size_t gshmem_path_wait_any(enum gshmem_type type, const void *ivars, size_t nelems,
                                       const int *status, int cmp, const void *values, int vector);
GSHMEM_API size_t gshmem_path_test_any(enum gshmem_type type, const void *ivars, size_t nelems,
                                       const int *status, int cmp, const void *values, int vector);

/* Waits until at least one is satisfied; test does not wait. Returns how many are satisfied, and
 * stores the indices of these in `indices`. */
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
