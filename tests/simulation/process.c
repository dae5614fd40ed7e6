/* What a simulated process sees of its machine: a name, an address, CPUs, no files, and no
 * libraries but the simulation's bootstrap. */
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explore.h"
#include "fence.h"
#include "fiber.h"
#include "gpu.h"
#include "nth.h"
#include "object.h"
#include "record.h"
#include "wrap.h"

enum { PID_FIRST = 10000, FILES_MOST = 1 << 16 };

#define GPU_MODULE "gshmem-cuda.so"

/* What dlopen returns for the bootstrap, and for the device. */
static char simulation_handle, gpu_handle;

/* ---- Descriptors ---- */

ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
    if (NTH(read))
        return -1;
    struct object *o = object_of(fd);

    if (fd < DESCRIPTOR_FIRST)
        return read(fd, to, bytes);
    fiber_call();
    explore_touch(fiber_current->pe, o, true);
    if (!o || bytes != sizeof o->count || !o->count) {
        errno = o ? EAGAIN : EBADF;
        return -1;
    }
    memcpy(to, &o->count, sizeof o->count);
    o->count = 0;
    return sizeof o->count;
}

/* A process's lines on standard error are lines of the log. */
static void process_say(const char *from, size_t bytes)
{
    struct pe *pe = fiber_current->pe;

    /* Lines for people that have addresses, and what a machine has, are no part of the log. */
    if (memmem(from, bytes, " info: ", 7) || memmem(from, bytes, " debug: ", 8))
        return;
    record("PE %d: %.*s", pe->number, (int)(bytes ? bytes - 1 : 0), from);
    nth_says(pe);
}

ssize_t __wrap_write(int fd, const void *from, size_t bytes)
{
    if (NTH(write))
        return -1;
    struct object *o = object_of(fd);

    if (!fiber_current)
        return write(fd, from, bytes);
    if (fd < DESCRIPTOR_FIRST) {
        process_say(from, bytes);
        return (ssize_t)bytes;
    }
    fiber_call();
    if (!o || o->kind != OBJECT_EVENT || bytes != sizeof o->count) {
        errno = EBADF;
        return -1;
    }
    uint64_t more;
    memcpy(&more, from, sizeof more);
    explore_touch(o->pe, o, true);
    explore_advances();
    o->count += more;
    object_changed(o);
    return (ssize_t)bytes;
}

int __wrap_close(int fd)
{
    struct object *o = object_of(fd);

    if (fd < DESCRIPTOR_FIRST)
        return close(fd);
    fiber_call();
    if (!o) {
        world_fail("PE %d closes a descriptor that is not open", fiber_current->pe->number);
        errno = EBADF;
        return -1;
    }
    object_close(o);
    return 0;
}

int __wrap_eventfd(unsigned count, int flags)
{
    if (NTH(eventfd))
        return -1;
    struct object *o = object_new(OBJECT_EVENT);

    (void)flags;
    o->count = count;
    return o->fd;
}

int __wrap_epoll_create1(int flags)
{
    if (NTH(epoll_create))
        return -1;
    (void)flags;
    return object_new(OBJECT_EPOLL)->fd;
}

int __wrap_timerfd_create(int clock, int flags)
{
    if (NTH(timerfd_create))
        return -1;
    (void)clock, (void)flags;
    return object_new(OBJECT_TIMER)->fd;
}

/* ---- The process and its machine ---- */

pid_t __wrap_getpid(void)
{
    return fiber_current ? PID_FIRST + fiber_current->pe->number : getpid();
}

pid_t __wrap_getppid(void)
{
    return 1;
}

pid_t __wrap_gettid(void)
{
    return PID_FIRST + fiber_current->pe->number + fiber_current->number * 100000;
}

int __wrap_gethostname(char *name, size_t size)
{
    snprintf(name, size, "node%d", fiber_current->pe->node);
    return 0;
}

struct interface {
    struct ifaddrs list;
    struct sockaddr_in address, mask;
};

int __wrap_getifaddrs(struct ifaddrs **out)
{
    if (NTH(getifaddrs))
        return -1;
    struct interface *i = calloc(1, sizeof *i);

    if (!i)
        return -1;
    i->address = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(10u << 24 | (uint32_t)(fiber_current->pe->node + 1))};
    i->mask = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xff000000)};
    i->list = (struct ifaddrs){.ifa_name = "eth0",
                               .ifa_flags = IFF_UP | IFF_RUNNING,
                               .ifa_addr = (struct sockaddr *)&i->address,
                               .ifa_netmask = (struct sockaddr *)&i->mask};
    *out = &i->list;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
    free(list);
}

int __wrap_getrlimit64(int what, struct rlimit *limit)
{
    *limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    if (what == RLIMIT_NOFILE)
        *limit = (struct rlimit){FILES_MOST, FILES_MOST};
    return 0;
}

int __wrap_setrlimit64(int what, const struct rlimit *limit)
{
    (void)what, (void)limit;
    return 0;
}

int __wrap_getrusage(int who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){.ru_nivcsw =
                                 world.pace.yields_count ? (long)(fiber_time() / (2 * US)) : 0};
    return 0;
}

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    (void)pid, (void)bytes;
    CPU_ZERO(set);
    for (size_t i = 0; i < (size_t)world.cpus; i++)
        CPU_SET(i, set);
    return 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
    (void)pid, (void)bytes, (void)set;
    return 0;
}

int __wrap_sched_getcpu(void)
{
    return fiber_current->pe->number % world.cpus;
}

long __wrap_sysconf(int name)
{
    switch (name) {
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
        return world.cpus;
    case _SC_PHYS_PAGES:
        return 16 << 20;
    default:
        return sysconf(name);
    }
}

/* ---- No files, and no modules ---- */

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    if (!fiber_current) /* a compiler's own code, at the end of the process */
        return fopen(path, mode);
    errno = ENOENT;
    return NULL;
}

DIR *__wrap_opendir(const char *path)
{
    (void)path;
    errno = ENOENT;
    return NULL;
}

int __wrap_scandir64(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
                     int (*compare)(const struct dirent **, const struct dirent **))
{
    (void)path, (void)list, (void)filter, (void)compare;
    errno = ENOENT;
    return -1;
}

int __wrap_access(const char *path, int mode)
{
    (void)mode;
    if (strstr(path, GPU_MODULE))
        return 0;
    errno = ENOENT;
    return -1;
}

void *__wrap_dlopen(const char *path, int flags)
{
    (void)flags;
    if (path && strstr(path, GPU_MODULE))
        return &gpu_handle;
    return path && strcmp(path, FENCE_MODULE) == 0 ? &simulation_handle : NULL;
}

void *__wrap_dlsym(void *handle, const char *name)
{
    if (handle == &gpu_handle && strcmp(name, "gshmem_device") == 0)
        return (void *)(uintptr_t)&gpu_ops;
    return handle == &simulation_handle && strcmp(name, "gshmem_bootstrap") == 0
               ? (void *)(uintptr_t)&fence_ops
               : NULL;
}

char *__wrap_dlerror(void)
{
    return "there are no libraries in the simulation";
}

int __wrap_dl_iterate_phdr(int (*visit)(void *, size_t, void *), void *argument)
{
    (void)visit, (void)argument;
    return 0;
}

/* ---- The end ---- */

int __wrap_on_exit(void (*call)(int, void *), void *argument)
{
    (void)call, (void)argument;
    return 0;
}

int __wrap___register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
                             void *object)
{
    (void)before, (void)parent, (void)child, (void)object;
    return 0;
}

void (*__wrap_signal(int number, void (*call)(int)))(int)
{
    (void)number, (void)call;
    return NULL;
}

int __wrap_pause(void)
{
    fiber_block(NEVER);
    errno = EINTR;
    return -1;
}

void __wrap_exit(int status)
{
    fiber_exit(status);
}

void __wrap__exit(int status)
{
    fiber_exit(status);
}
