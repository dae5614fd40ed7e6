/* A batch: many elements of one object at one PE, in one request (TRANSPORT_BATCH).
 *
 * The request names the object by a segment and the offset of its element 0. Its payload has one
 * record for each element: the number of the element, and for a put or an update its value. The
 * target carries the records out in their order. The elements of a batch of gets come back one
 * after the other, in the order of the records.
 *
 * The payload stays as it is until the request is done, unless it has at most TRANSPORT_COPIED
 * bytes and TRANSPORT_KEPT is not set: then it is copied. */
#ifndef GSHMEM_TRANSPORT_BATCH_H
#define GSHMEM_TRANSPORT_BATCH_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "transport/transport.h"

enum {
    BATCH_NUMBER_BYTES = 4,     /* of an element's number, little-endian */
    BATCH_ELEMENTS_MOST = 4096, /* in one batch */
    BATCH_ELEMENT_MOST = 64,    /* bytes of an element, a power of two */
};

static inline size_t batch_record_bytes(int each, size_t element_bytes)
{
    return BATCH_NUMBER_BYTES + (each == TRANSPORT_GET ? 0 : element_bytes);
}

static inline void batch_put_number(char *record, uint32_t number)
{
    number = htole32(number);
    memcpy(record, &number, sizeof number);
}

static inline uint32_t batch_number(const char *record)
{
    uint32_t number;

    memcpy(&number, record, sizeof number);
    return le32toh(number);
}

/* An operand of a record of updates, of 4 or 8 bytes. */
static inline __attribute__((always_inline)) uint64_t batch_operand(const char *value,
                                                                    size_t bytes)
{
    uint64_t operand = 0;
    uint32_t half;

    if (bytes == sizeof operand) {
        memcpy(&operand, value, sizeof operand);
        return operand;
    }
    memcpy(&half, value, sizeof half);
    return half;
}

/* Whether a batch has elements of a size and in a number that there may be, and its payload the
 * bytes of their records. */
static inline bool batch_is_sound(int each, uint64_t elements, uint64_t element_bytes,
                                  uint64_t bytes)
{
    return (each == TRANSPORT_PUT || each == TRANSPORT_GET || each == TRANSPORT_ATOMIC) &&
           elements - 1 < BATCH_ELEMENTS_MOST && element_bytes - 1 < BATCH_ELEMENT_MOST &&
           (element_bytes & (element_bytes - 1)) == 0 &&
           bytes == elements * batch_record_bytes(each, element_bytes);
}

#endif
