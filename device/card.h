#ifndef GSHMEM_DEVICE_CARD_H
#define GSHMEM_DEVICE_CARD_H

#include <stdint.h>

/* What a PE shows the others of its node, and those of its NVLink domain, so that they know how to
 * map its heap. */
struct device_card {
    unsigned char unit[16]; /* which GPU it is */
    uint64_t heap_most;     /* bytes that its heap can grow to */
    uint32_t share;         /* how its pieces are handed over; a number of the device's */
    uint32_t present;       /* 0: this PE has no heap of a device's */
    uint32_t multicast;     /* its unit can be one of those that a multicast address stands for */
    uint32_t clique;        /* of the domain: only in it do units reach each other */
    unsigned char domain[16]; /* of units that NVLink connects across nodes; zero: in none */
    uint64_t window; /* bytes of addresses for memory of the program's that the heap may be lent */
};

#endif
