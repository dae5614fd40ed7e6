/* Blocking reads and writes of a socket that end at a deadline. */
#ifndef GSHMEM_BOOTSTRAP_STREAM_H
#define GSHMEM_BOOTSTRAP_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* When a wait that begins now and may last so many seconds is over, in clock_ns() time. */
uint64_t stream_deadline(int seconds);
/* Milliseconds until then, for poll; 0 when it has passed. */
int stream_left_ms(uint64_t deadline);

/* A TCP connection to the address, or -1 with errno. */
int stream_connect(const struct sockaddr *to, socklen_t bytes, uint64_t deadline);

/* Reads what is there, at least one byte. 0: the other side has closed; -1: errno tells why,
 * ETIMEDOUT when the deadline passed first. */
ssize_t stream_read(int fd, void *buffer, size_t bytes, uint64_t deadline);
/* Reads exactly this many bytes and returns that, or 0 or -1 as above. */
ssize_t stream_read_all(int fd, void *buffer, size_t bytes, uint64_t deadline);
/* Writes all of it and returns 0, or -1. */
int stream_write_all(int fd, const void *buffer, size_t bytes, uint64_t deadline);

#endif
