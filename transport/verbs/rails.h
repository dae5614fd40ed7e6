/* Which NIC of one PE is paired with which of another's. Both compute it from what each
 * publishes, and come to the same. */
#ifndef GSHMEM_TRANSPORT_VERBS_RAILS_H
#define GSHMEM_TRANSPORT_VERBS_RAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NICS_MOST = 8,  /* of one PE */
    RAILS_MOST = 4, /* of two PEs: pairs of their NICs */
};

enum rail_kind { RAIL_INFINIBAND, RAIL_ETHERNET, RAIL_IWARP, RAIL_KINDS };

/* What is published of a NIC. */
struct rail_end {
    uint32_t subnet; /* a digest of its network and prefix; 0: not known */
    uint8_t place; /* among its machine's devices, by their names: machines are often built alike */
    uint8_t distance; /* from its PE, 0 the nearest */
    uint8_t kind;     /* an enum rail_kind */
};

struct rail {
    uint8_t mine, theirs; /* numbers of NICs */
};

/* "GSHv", a version, 6 bytes for each NIC, and last how many. */
enum {
    RAILS_HEAD = 5,
    RAILS_END = 6,
    RAILS_VERSION = 2,
    RAILS_BYTES = RAILS_HEAD + NICS_MOST * RAILS_END + 1
};

/* Returns how many bytes it takes; 0: there is no room. */
size_t rails_encode(unsigned char *to, size_t room, const struct rail_end *end, int n);
/* Reads the end of what a PE has published; -1: that is not of this version. */
int rails_decode(const unsigned char *in, size_t bytes, struct rail_end end[NICS_MOST]);

/* The pairs, the best first; returns how many. `first`: true for the same PE of the two on both
 * sides. */
int rails_pair(const struct rail_end *mine, int n_mine, const struct rail_end *theirs, int n_theirs,
               bool first, struct rail rail[RAILS_MOST]);

/* Which of a PE's NICs makes all atomics in its memory that NICs make (atomics.c): the one that is
 * first on its machine, so that those of all PEs are on one rail, if there are rails. */
int rails_updater(const struct rail_end *end, int n);
/* The pair of those NICs of both PEs; returns 1. */
int rails_of_updaters(const struct rail_end *mine, int n_mine, const struct rail_end *theirs,
                      int n_theirs, struct rail rail[RAILS_MOST]);
/* Adds that pair if either NIC is in no pair; returns how many pairs there are now. */
int rails_with_updaters(const struct rail_end *mine, int n_mine, const struct rail_end *theirs,
                        int n_theirs, struct rail rail[RAILS_MOST], int n);

/* A digest of the first `prefix` bits of an address; not 0. */
uint32_t rails_subnet(const unsigned char address[16], unsigned prefix);

#endif
