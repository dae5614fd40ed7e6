/* One call on the symmetric heap, as one PE makes it, and how all PEs find that they agree on it.
 *
 * Each PE puts what it asks for, what it would answer and why it cannot into a few words. If the
 * words are the same everywhere the call stands; else it fails on every PE, and one of them says
 * which PE differs and how. */
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

/* In the order in which a difference matters: the first one found is the one that is told. */
enum request_word {
    REQUEST_CALL,
    REQUEST_MISUSE, /* a status: this PE refuses its own arguments */
    REQUEST_BYTES,
    REQUEST_ALIGNMENT,
    REQUEST_HINTS,
    REQUEST_OBJECT, /* 1 + offset of the object given; 0: NULL */
    REQUEST_MEMORY, /* a status: this PE has no room */
    REQUEST_RESULT, /* 1 + offset of the object to return; 0: NULL */
    REQUEST_WORDS
};

#define REQUEST_OF_DEVICE (UINT64_C(1) << 62) /* with an object's offset: in the device's heap, */
#define REQUEST_OF_NICS   (UINT64_C(1) << 61) /* or in what NICs update */

struct request {
    uint64_t word[REQUEST_WORDS];
    char why[320]; /* what REQUEST_MISUSE or REQUEST_MEMORY is about */
    bool said;     /* which has been logged */

    /* If not NULL, PEs may ask for different sizes, to find the largest here. The call does not
     * stand then, and is to be made again with that. */
    uint64_t *largest;
};

static inline const char *request_name(const struct request *r)
{
    return heap_call_name[r->word[REQUEST_CALL]];
}

/* Puts a status into REQUEST_MISUSE or REQUEST_MEMORY; the line will begin with the call's name. */
void request_refuse(struct request *r, enum request_word word, gshmem_status_t status,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same with what has just failed on this PE, and has said why. */
void request_refuse_failed(struct request *r, gshmem_status_t status);

/* Called by all PEs; also completes this PE's operations and is a barrier. GSHMEM_OK only if all
 * brought the same words and none refuses; else it has been logged by one PE. */
gshmem_status_t request_agree(const struct request *r);

#endif
