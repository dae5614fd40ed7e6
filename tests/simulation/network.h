/* The simulated network: streams between PEs, with what can happen to them. */
#ifndef TEST_SIMULATION_NETWORK_H
#define TEST_SIMULATION_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pe;
struct socket;

/* How the network is, by the seed. */
struct weather {
    uint64_t latency_ns, jitter_ns; /* one way; the latter: at most */
    uint64_t byte_ps;               /* of bandwidth: picoseconds a byte */
    uint64_t capacity;              /* bytes that a stream takes before its reader does */
    uint64_t partial;               /* one in so many sends and receives is cut; 0: none */
    uint64_t slow;                  /* one in so many pieces is late by up to slow_ns; 0: none */
    uint64_t slow_ns;
    uint64_t clogged_until, clog_ns; /* until then all pieces are late, by up to clog_ns */
};

extern struct weather weather;

void network_begin(uint64_t seed);

/* From now until a time nothing arrives from PEs of one side at those of the other. side: a bit for
 * PE % 64; both: nor the other way. */
void network_part(uint64_t from_side, uint64_t to_side, bool both, uint64_t until);
/* A connection between the two PEs, drawn by chance, is reset. Whether there is one. */
bool network_cut(struct pe *a, struct pe *b);
void network_process_ended(struct pe *pe);
/* Whether some PE that lives makes first contact with that one's machine: it has for that until
 * GSHMEM_INIT_TIMEOUT. */
bool network_is_opening(const struct pe *to);
/* How many there have been. */
uint64_t network_connections(void);

/* For object.c. */
uint32_t socket_events(const struct socket *s);
void socket_close(struct socket *s);

#endif
