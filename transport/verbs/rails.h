/* Which NIC of one PE talks to which of another's: both work it out from what each publishes of its
 * own, and come to the same. */
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
    uint32_t subnet;  /* a digest of its network and prefix; 0: not known */
    uint8_t place;    /* among its host's devices, by their names: hosts are often built alike */
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

/* How many bytes it takes, 0 where there is no room. */
size_t rails_encode(unsigned char *to, size_t room, const struct rail_end *end, int n);
/* From the end of what a PE has published; -1: that is none of this version's. */
int rails_decode(const unsigned char *in, size_t bytes, struct rail_end end[NICS_MOST]);

/* The pairs, the best first; how many. `first`: of two PEs the same one says so on both sides. */
int rails_pair(const struct rail_end *mine, int n_mine, const struct rail_end *theirs, int n_theirs,
               bool first, struct rail rail[RAILS_MOST]);

/* Which of a PE's NICs makes all updates of its memory that NICs make (atomics.c): the one that is
 * first on its host, so that all PEs' are on one rail, if there are rails. */
int rails_updater(const struct rail_end *end, int n);
/* Those of both PEs alone, as a pair: 1. */
int rails_of_updaters(const struct rail_end *mine, int n_mine, const struct rail_end *theirs,
                      int n_theirs, struct rail rail[RAILS_MOST]);
/* Has both PEs' in some pair; how many there are now. */
int rails_with_updaters(const struct rail_end *mine, int n_mine, const struct rail_end *theirs,
                        int n_theirs, struct rail rail[RAILS_MOST], int n);

/* Of an address of 128 bits, of which so many are its network's; not 0. */
uint32_t rails_subnet(const unsigned char address[16], unsigned prefix);

#endif
