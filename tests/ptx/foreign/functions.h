/* What functions.cu and foreign.cu agree on: where things are. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include <stdint.h>

enum { INTS = 100, REDUCE = 3, PIECE = 4 * INTS };

/* Results. */
enum { ME, ALL, OWN, OUTSIDE, MULTICAST, WRONG, RESULTS };

/* Offsets in the symmetric memory. */
enum {
    SIGNAL = 0,
    COUNT = 8,
    INT = 16,
    LONGLONG = 24,
    MINUS = 32, /* -1 - 2^40 */
    SOURCE = 64,
    PUT = SOURCE + PIECE,
    PUT_AGAIN = PUT + PIECE,
    GOT = PUT_AGAIN + PIECE,
    GOT_AGAIN = GOT + PIECE,
    GOT_LATER = GOT_AGAIN + PIECE,
    SIGNALLED = GOT_LATER + PIECE,
    EXCHANGED = SIGNALLED + PIECE,
    BROADCAST = EXCHANGED + PIECE,
    REDUCTIONS = BROADCAST + PIECE, /* of each type: the source, sum, product, minimum, maximum */
    TYPES = 12,
    HEAP = REDUCTIONS + TYPES * 40 * REDUCE
};

/* What is reduced, with the type of the CPU that has its bits. */
#define REDUCED(X)                                                                                 \
    X(int8, int8_t)                                                                                \
    X(int16, int16_t)                                                                              \
    X(int32, int32_t)                                                                              \
    X(int64, int64_t)                                                                              \
    X(uint8, uint8_t)                                                                              \
    X(uint16, uint16_t)                                                                            \
    X(uint32, uint32_t)                                                                            \
    X(uint64, uint64_t)                                                                            \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    X(half, half)                                                                                  \
    X(bfloat16, bfloat16)

#endif
