/* Calls that fail: one PE's Nth call of a kind, or all of its calls of that kind from the Nth on. */
#ifndef TEST_SIMULATION_NTH_H
#define TEST_SIMULATION_NTH_H

#include <stdbool.h>
#include <stdint.h>

struct pe;

/* Each kind of call, and the error with which it fails. */
#define NTH_KINDS(X)                                                                               \
    X(malloc, ENOMEM)                                                                              \
    X(mmap, ENOMEM)                                                                                \
    X(mremap, ENOMEM)                                                                              \
    X(memfd_create, EMFILE)                                                                        \
    X(ftruncate, ENOSPC)                                                                           \
    X(fallocate, ENOSPC)                                                                           \
    X(fcntl, EMFILE)                                                                               \
    X(socket, EMFILE)                                                                              \
    X(bind, EADDRINUSE)                                                                            \
    X(connect, ENETUNREACH)                                                                        \
    X(accept, EMFILE)                                                                              \
    X(setsockopt, ENOBUFS)                                                                         \
    X(getsockopt, EINVAL)                                                                          \
    X(send, ECONNRESET)                                                                            \
    X(recv, ECONNRESET)                                                                            \
    X(sendmsg, ECONNRESET)                                                                         \
    X(recvmsg, ECONNRESET)                                                                         \
    X(poll, ENOMEM)                                                                                \
    X(epoll_create, EMFILE)                                                                        \
    X(epoll_ctl, ENOSPC)                                                                           \
    X(epoll_wait, EINTR)                                                                           \
    X(eventfd, EMFILE)                                                                             \
    X(timerfd_create, EMFILE)                                                                      \
    X(timerfd_settime, EINVAL)                                                                     \
    X(read, EIO)                                                                                   \
    X(write, EIO)                                                                                  \
    X(random, ENOSYS)                                                                              \
    X(getifaddrs, ENOBUFS)                                                                         \
    X(pthread_create, EAGAIN)

enum nth_kind {
#define X(name, error) NTH_##name,
    NTH_KINDS(X)
#undef X
        NTH_KINDS_ALL
};

/* what: "PE" counts that PE's calls, "PE:KIND:N" fails one, "PE:KIND:N+" all from there on; false:
 * it is none of these. */
bool nth_choose(const char *what);
/* Whether the call that is made from there fails; sets errno. */
bool nth_fails(enum nth_kind kind, const void *from);
/* Whether a call comes from the library, and not from the workload. */
bool nth_is_library(const void *from);
#define NTH(kind) nth_fails(NTH_##kind, __builtin_return_address(0))

/* That PE writes a line on standard error. */
void nth_says(const struct pe *pe);
/* Calls fail for good, and their PE has said so within this time: it may wait as long as they
 * fail. */
bool nth_is_said(uint64_t within);

/* A PE's memory that it has not freed. */
void nth_allocated(void *memory, const void *from);
void nth_freed(const void *memory);

/* Each place that makes such calls: "site KIND OFFSET FIRST SECOND LAST", with their numbers; and
 * what that PE has not given back: "left BLOCKS DESCRIPTORS", with a place of each block. */
void nth_print(void);

#endif
