/* One call on the symmetric heap, as one PE makes it, and how all PEs find that they agree on it.
 *
 * Each PE puts its arguments, its result and its reason for a refusal into a few words. If the
 * words are the same on all PEs the call succeeds. Otherwise it fails on every PE, and one of them
 * logs which PE differs and how. */
#ifndef GSHMEM_RUNTIME_REQUEST_H
#define GSHMEM_RUNTIME_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/status.h"

enum heap_call {
    HEAP_MALLOC,
    HEAP_CALLOC,
    HEAP_ALIGN,
    HEAP_MALLOC_WITH_HINTS,
    HEAP_REALLOC,
    HEAP_FREE,
    HEAP_REGISTER,
    HEAP_UNREGISTER,
};

extern const char *const heap_call_name[]; /* "gshmem_malloc", … */

/* In the order in which a difference matters: the first one found is reported. */
enum request_word {
    REQUEST_CALL,
    REQUEST_MISUSE, /* a status: this PE refuses its own arguments */
    REQUEST_BYTES,
    REQUEST_ALIGNMENT,
    REQUEST_HINTS,
    REQUEST_OBJECT, /* 1 + offset of the argument's object, or of the place that is preferred for
                       it; 0: NULL, or none */
    REQUEST_MEMORY, /* a status: this PE has no room */
    REQUEST_RESULT, /* 1 + offset of the result's object; 0: NULL */
    REQUEST_WORDS
};

#define REQUEST_OF_DEVICE (UINT64_C(1) << 62) /* with an object's offset: in the device's heap */
#define REQUEST_OF_NICS   (UINT64_C(1) << 61) /* with an object's offset: in the NIC heap */

struct request {
    uint64_t word[REQUEST_WORDS];
    char why[320]; /* the reason for REQUEST_MISUSE or REQUEST_MEMORY */
    bool said;     /* whether it has been logged */

    /* If not NULL, PEs may request different sizes, to find the largest here. The call then fails,
     * and is to be made again with that size. */
    uint64_t *largest;
};

static inline const char *request_name(const struct request *r)
{
    return heap_call_name[r->word[REQUEST_CALL]];
}

/* Puts a status into REQUEST_MISUSE or REQUEST_MEMORY; the error line will begin with the call's
 * name. */
void request_refuse(struct request *r, enum request_word word, gshmem_status_t status,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same after a failure on this PE that has been logged. */
void request_refuse_failed(struct request *r, gshmem_status_t status);

#endif
