/* More than one proxy (GSHMEM_PROXIES): a PE has that many lanes, each a network of its own with
 * its lock, its transports, its proxy and its part of the kernels' channels. Lane 0 is the PE's
 * network, which the requests of threads use. Lane k of a PE reaches lane k of the others. What a
 * PE has once is lane 0's: which PEs have failed, its key, the end of the job.
 *
 * This file is about what lanes share, and what a PE publishes of them. It knows nothing of
 * networks. */
#ifndef GSHMEM_RUNTIME_NETWORK_LANES_H
#define GSHMEM_RUNTIME_NETWORK_LANES_H

#include <stddef.h>
#include <stdint.h>

enum { LANES_MOST = 4 };

/* The value of a setting for each of `lanes` lanes: limits of a NIC are divided among them. */
int64_t lanes_share(const char *setting, int64_t value, int lanes);

/* The addresses of two lanes of a PE hardly differ. So behind the address of lane 0, that of each
 * further lane is published as the number of bytes that it shares with lane 0's at the beginning,
 * of those at the end, of those in between, and these. Returns how many bytes it takes; 0: there is
 * no room. */
size_t lanes_encode(const unsigned char *first, size_t first_bytes, const unsigned char *address,
                    size_t bytes, unsigned char *out, size_t capacity);
/* The address of lane `number`, from 1; `published` is that of all further lanes. Returns its
 * bytes; 0: there is none, or it is damaged. */
size_t lanes_decode(const unsigned char *first, size_t first_bytes, const unsigned char *published,
                    size_t published_bytes, int number, unsigned char *out, size_t capacity);

#endif
