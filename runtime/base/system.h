/* The seam to the system: with clock.h, all that the library asks of the system while it runs whose
 * result depends on time, on chance, or on another process.
 *
 * A normal build has direct calls, inline. A file that is compiled with -DGSHMEM_SIMULATED calls
 * functions of these names instead, which a simulation brings: it decides what time it is, who runs
 * next, and which bytes arrive when. tests/simulation is one; tests/unit/simulated.c a small one.
 *
 * Not in the seam: what makes and ends a descriptor without a peer (epoll_create1, eventfd,
 * timerfd_create, read, write, close), as a simulation gives out real descriptors; and files,
 * memory and threads. */
#ifndef GSHMEM_BASE_SYSTEM_H
#define GSHMEM_BASE_SYSTEM_H

#ifndef _GNU_SOURCE
#error "accept4, ppoll and struct ucred need _GNU_SOURCE, before the first include"
#endif

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>

#include "runtime/base/clock.h"

/* Each as the call that it is named for, and errno says why it failed, but for what is said
 * here. */

/* Bytes that nobody can guess. */
SYSTEM_CALL bool system_random(void *to, size_t bytes);
/* op: FUTEX_WAIT and so on, of linux/futex.h; most: how long to sleep, NULL: any time. */
SYSTEM_CALL void system_futex(void *word, int op, uint32_t value, const struct timespec *most);

SYSTEM_CALL int system_socket(int domain, int type);
/* Gives a socket the name, of *size bytes, and listens if backlog > 0. *name and *size are then the
 * name that it got: the system chooses a port 0, and a Unix name of no bytes. */
SYSTEM_CALL int system_bind(int fd, struct sockaddr_storage *name, socklen_t *size, int backlog);
SYSTEM_CALL int system_connect(int fd, const struct sockaddr *to, socklen_t size);
/* from: the peer's name; NULL: not needed. */
SYSTEM_CALL int system_accept(int fd, struct sockaddr_storage *from, int flags);
SYSTEM_CALL ssize_t system_send(int fd, const void *from, size_t bytes, int flags);
SYSTEM_CALL ssize_t system_recv(int fd, void *to, size_t bytes, int flags);
SYSTEM_CALL ssize_t system_sendmsg(int fd, const struct msghdr *message, int flags);
SYSTEM_CALL ssize_t system_recvmsg(int fd, struct msghdr *message, int flags);
SYSTEM_CALL int system_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
SYSTEM_CALL int system_getsockopt(int fd, int level, int name, void *value, socklen_t *size);

/* Waits for nanoseconds; negative: for any time. */
SYSTEM_CALL int system_poll(struct pollfd *fds, nfds_t n, int64_t ns);
SYSTEM_CALL int system_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
SYSTEM_CALL int system_epoll_wait(int epoll, struct epoll_event *events, int most, int ms);
SYSTEM_CALL int system_timerfd_settime(int fd, int flags, const struct itimerspec *when);

#ifndef GSHMEM_SIMULATED
#include "runtime/base/system_calls.h"
#endif

#endif
