/* The system calls of each round, without the C library's wrapper: there each is a cancellation
 * point, which costs two locked instructions once a process has threads. Sanitizers need the
 * wrapper. */
#ifndef GSHMEM_TRANSPORT_TCP_CALLS_H
#define GSHMEM_TRANSPORT_TCP_CALLS_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CALLS_OF_LIBRARY
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define CALLS_OF_LIBRARY
#endif
#endif
#if !defined(SYS_recvfrom) || !defined(SYS_sendto) || !defined(SYS_sendmsg)
#define CALLS_OF_LIBRARY
#endif

#ifdef CALLS_OF_LIBRARY
static inline ssize_t call_recv(int fd, void *at, size_t bytes, int flags)
{
    return recv(fd, at, bytes, flags);
}
static inline ssize_t call_send(int fd, const void *at, size_t bytes, int flags)
{
    return send(fd, at, bytes, flags);
}
static inline ssize_t call_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return sendmsg(fd, message, flags);
}
#else
static inline ssize_t call_recv(int fd, void *at, size_t bytes, int flags)
{
    return syscall(SYS_recvfrom, fd, at, bytes, flags, NULL, NULL);
}
static inline ssize_t call_send(int fd, const void *at, size_t bytes, int flags)
{
    return syscall(SYS_sendto, fd, at, bytes, flags, NULL, 0);
}
static inline ssize_t call_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return syscall(SYS_sendmsg, fd, message, flags);
}
#endif

#endif
