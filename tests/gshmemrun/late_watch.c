/* Preloaded into gshmemrun: as on a busy machine it comes late to watch a program that a wrapper has begun, and to
 * what PEs say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OVERRIDES __attribute__((visibility("default")))

OVERRIDES long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_pidfd_open)
        usleep(500000);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

OVERRIDES int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    static int (*next)(int, struct epoll_event *, int, int);

    if (!next)
        next = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
    usleep(100000);
    return next(fd, events, most, ms);
}
