/* The target's side of a batch (batch.h): the object that its records name elements of, and how
 * they are carried out, whatever transport has brought them. */
#ifndef GSHMEM_TRANSPORT_BATCH_TARGET_H
#define GSHMEM_TRANSPORT_BATCH_TARGET_H

#include "transport/batch.h"
#include "transport/segment.h"

struct batch_object {
    const struct transport_config *config;
    char *at;          /* its element 0, */
    uint64_t offset;   /* which is there in the segment; */
    uint64_t elements; /* and so many from there on, which the segment has */
    uint8_t segment;
    uint8_t each;      /* what the batch does to each element: an enum transport_kind */
    uint8_t amo, type; /* of an update */
    uint32_t bytes;    /* of an element */
};

/* Finds the object, of which all but `at` and `elements` is filled in, and whose elements are of a
 * size that there may be (batch_is_sound). False: it is not in symmetric memory that the CPU
 * reaches, or no object of that update. */
bool batch_find_object(struct batch_object *o);

/* Carries out n records of puts, or of updates without old values. False: an element is not in
 * symmetric memory, and neither it nor those behind it are changed. */
bool batch_carry_out(const struct batch_object *o, const char *record, size_t n);

/* Where an element is, or NULL. Elements of imported memory are behind those that the segment has
 * of its own. */
static inline char *batch_element(const struct batch_object *o, uint32_t number, size_t bytes)
{
    if (GSHMEM_LIKELY(number < o->elements))
        return o->at + number * bytes;
    return segment_at(o->config, o->segment, o->offset + number * (uint64_t)bytes, bytes);
}

/* A case for each size that elements may have. */
#define BATCH_BY_SIZE(bytes, call)                                                                 \
    switch (bytes) {                                                                               \
    case 1:                                                                                        \
        return call(1);                                                                            \
    case 2:                                                                                        \
        return call(2);                                                                            \
    case 4:                                                                                        \
        return call(4);                                                                            \
    case 8:                                                                                        \
        return call(8);                                                                            \
    case 16:                                                                                       \
        return call(16);                                                                           \
    case 32:                                                                                       \
        return call(32);                                                                           \
    default:                                                                                       \
        return call(64);                                                                           \
    }

#endif
