/* Preloaded into gshmemrun: /proc shows all threads as about to end, as those of a process are that dumps a large core
 * or has much memory to free. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OVERRIDES __attribute__((visibility("default")))

OVERRIDES int open(const char *path, int flags, ...)
{
    static const char text[] = "1 (a thread) S 1 1 1 0 -1 4";
    static int (*next)(const char *, int, ...);
    int mode = 0;

    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, int);
        va_end(args);
    }
    if (strncmp(path, "/proc/", 6) == 0 && strstr(path, "/task/")) {
        const int fd = memfd_create("thread", MFD_CLOEXEC);
        if (fd >= 0 && pwrite(fd, text, sizeof text - 1, 0) == sizeof text - 1)
            return fd;
    }
    if (!next)
        next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    return next(path, flags, mode);
}
