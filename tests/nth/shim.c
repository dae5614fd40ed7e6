/* Fails calls of the system that GSHMEM makes in real processes: a library for LD_PRELOAD, with a
 * function in place of each call. A place is where a library or program of GSHMEM calls one; all
 * processes of a run count the calls of each place, by the part that the process has in the job, in a
 * file that they share (NTH_FILE). One place fails:
 *
 *     NTH_FAIL="ROLE CALL OBJECT OFFSET N[+]"
 *
 * its Nth call there in a process of that role, or with + all from there on. Roles are numbers of
 * PEs, and -1 for the launcher and tools. */
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

/* The file in which all processes of a run count the calls of each place. `run` reads it, too. */
enum { NTH_PLACES = 8192, NTH_OBJECT_BYTES = 48, NTH_NO_PE = -1 };

struct nth_place {
    _Atomic uint64_t key; /* 0: free */
    uint64_t offset;      /* where the call returns to, in the object */
    _Atomic uint64_t calls, failed;
    int32_t role;
    char call[28];
    char object[NTH_OBJECT_BYTES];
};

struct nth_file {
    struct nth_place place[NTH_PLACES];
};

static_assert(sizeof(struct nth_place) == 112, "the format in `run`");

enum { BLOCKS = 1 << 17 };

static struct {
    struct nth_file *file;
    int role;
    bool fails, always;
    int fail_role;
    char fail_call[28], fail_object[NTH_OBJECT_BYTES];
    uint64_t fail_offset, fail_number;
    char program[NTH_OBJECT_BYTES]; /* the executable's name, which the loader does not know */
    bool program_is_ours;
    struct {
        _Atomic(const void *) memory;
        struct nth_place *place;
    } block[BLOCKS]; /* by address; none is removed, a freed one has no place */
} nth;

/* ---- What fails ---- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_ours(const char *name)
{
    return strncmp(name, "libgshmem", 9) == 0 || strncmp(name, "gshmem-", 7) == 0 ||
           strcmp(name, "gshmemrun") == 0;
}

static int role_of_process(void)
{
    static const char *const names[] = {"GSHMEM_RUN_PE", "PMI_RANK", "PMIX_RANK"};

    for (size_t i = 0; !is_ours(nth.program) && i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value)
            return atoi(value);
    }
    return NTH_NO_PE;
}

__attribute__((constructor)) static void nth_begin(void)
{
    const char *path = getenv("NTH_FILE"), *fail = getenv("NTH_FAIL");
    char self[4096], number[32];
    unsigned long long offset, n;
    char plus = 0;

    const ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!path || bytes < 0)
        return;
    self[bytes] = 0;
    snprintf(nth.program, sizeof nth.program, "%.47s", name_of(self));
    const char *ours = getenv("NTH_PROGRAM"); /* one that has the library in it */
    nth.program_is_ours = is_ours(nth.program) || (ours && strcmp(ours, nth.program) == 0);
    nth.role = role_of_process();
    if (fail) {
        const int fields = sscanf(fail, "%d %27s %47s %llx %31s", &nth.fail_role, nth.fail_call,
                                  nth.fail_object, &offset, number);
        if (fields != 5 || sscanf(number, "%llu%c", &n, &plus) < 1) {
            fprintf(stderr, "nth: NTH_FAIL=%s is not ROLE CALL OBJECT OFFSET N\n", fail);
            _exit(2);
        }
        nth.fails = true;
        nth.always = plus == '+';
        nth.fail_offset = offset;
        nth.fail_number = n;
    }
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *file = fd < 0 ? MAP_FAILED
                        : mmap(NULL, sizeof *nth.file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED) {
        perror(path);
        _exit(2);
    }
    nth.file = file;
}

/* The object that has the code at that address, and the address within it; NULL: not of GSHMEM. */
static const char *object_of(const void *from, uint64_t *offset)
{
    struct dl_find_object found;

    if (_dl_find_object((void *)(uintptr_t)from, &found) != 0)
        return NULL;
    const char *path = found.dlfo_link_map->l_name;
    *offset = (uintptr_t)from - found.dlfo_link_map->l_addr;
    if (!path || !path[0])
        return nth.program_is_ours ? nth.program : NULL;
    const char *name = name_of(path);
    return is_ours(name) ? name : NULL;
}

static uint64_t key_of(const char *object, uint64_t offset, const char *call)
{
    uint64_t key = (offset << 8 ^ (uint64_t)(nth.role + 2)) * UINT64_C(0x9e3779b97f4a7c15);

    for (; *object; object++)
        key = (key ^ (unsigned char)*object) * UINT64_C(0x100000001b3);
    for (; *call; call++)
        key = (key ^ (unsigned char)*call) * UINT64_C(0x100000001b3);
    return key | 1;
}

static struct nth_place *place_of(const char *call, const char *object, uint64_t offset)
{
    const uint64_t key = key_of(object, offset, call);

    for (uint64_t i = key >> 20; ; i++) {
        struct nth_place *p = &nth.file->place[i % NTH_PLACES];
        uint64_t is = 0;
        if (atomic_compare_exchange_strong(&p->key, &is, key)) {
            p->offset = offset;
            p->role = nth.role;
            snprintf(p->call, sizeof p->call, "%s", call);
            snprintf(p->object, sizeof p->object, "%s", object);
            return p;
        }
        if (is == key)
            return p;
    }
}

/* Whether the call that is made from there fails, with errno set; *place is NULL for code that is
 * not GSHMEM's. */
static bool nth_fails(const char *call, const void *from, int error, struct nth_place **place)
{
    static const struct timespec moment = {.tv_nsec = 100000};
    uint64_t offset = 0;

    *place = NULL;
    if (!nth.file)
        return false;
    const int saved = errno;
    const char *object = object_of(from, &offset);
    if (!object)
        return false;
    struct nth_place *p = *place = place_of(call, object, offset);
    const uint64_t number = atomic_fetch_add(&p->calls, 1) + 1;
    errno = saved;
    if (!nth.fails || nth.role != nth.fail_role || offset != nth.fail_offset ||
        number < nth.fail_number || (number > nth.fail_number && !nth.always) ||
        strcmp(object, nth.fail_object) != 0 || strcmp(call, nth.fail_call) != 0)
        return false;
    atomic_fetch_add(&p->failed, 1);
    nanosleep(&moment, NULL); /* so that one who tries again at once leaves the CPU to others */
    errno = error;
    return true;
}

#define FAILS(call, error)                                                                         \
    struct nth_place *place;                                                                       \
    const bool fails = nth_fails(call, __builtin_return_address(0), error, &place);                \
    (void)place

/* The function that this one stands for. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* ---- Memory ---- */

/* glibc's own names: dlsym may allocate. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void note_block(void *memory, struct nth_place *place)
{
    if (!memory || !nth.file)
        return;
    size_t i = (uintptr_t)memory / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 47;
    for (;; i = (i + 1) % BLOCKS) {
        const void *is = NULL;
        if (atomic_load(&nth.block[i].memory) == memory)
            break;
        if (!place && !atomic_load(&nth.block[i].memory))
            return;
        if (place && atomic_compare_exchange_strong(&nth.block[i].memory, &is, memory))
            break;
        if (is == memory)
            break;
    }
    nth.block[i].place = place;
}

void nth_left(int fd)
{
    char line[256];

    for (size_t i = 0; i < BLOCKS; i++) {
        const struct nth_place *p = nth.block[i].memory ? nth.block[i].place : NULL;
        if (!p)
            continue;
        const int n = snprintf(line, sizeof line, "nth: block of %d %s %#lx\n", nth.role, p->object,
                               (unsigned long)p->offset);
        if (write(fd, line, (size_t)n) != n)
            return;
    }
}

#define ALLOCATE(call)                                                                             \
    FAILS("malloc", ENOMEM);                                                                       \
    void *memory = fails ? NULL : (call);                                                          \
    note_block(memory, place);                                                                     \
    return memory

void *malloc(size_t bytes)
{
    ALLOCATE(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
    ALLOCATE(__libc_calloc(n, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    ALLOCATE(__libc_memalign(alignment, bytes));
}

void *realloc(void *old, size_t bytes)
{
    FAILS("malloc", ENOMEM);
    if (fails)
        return NULL;
    note_block(old, NULL);
    void *memory = __libc_realloc(old, bytes);
    note_block(memory ? memory : old, place);
    return memory;
}

char *strdup(const char *text)
{
    FAILS("malloc", ENOMEM);
    const size_t bytes = strlen(text) + 1;
    char *memory = fails ? NULL : __libc_malloc(bytes);
    note_block(memory, place);
    return memory ? memcpy(memory, text, bytes) : NULL;
}

void free(void *memory)
{
    note_block(memory, NULL);
    __libc_free(memory);
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    static int (*real)(int, int, int, void *, socklen_t *);

    if (!real)
        real = (int (*)(int, int, int, void *, socklen_t *))dlsym(RTLD_NEXT, "getsockopt");
    return real(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

/* ---- Calls of one form: what is returned when they fail, and with which error ---- */

#define CALL(result, name, bad, error, declared, ...)                                              \
    result name declared                                                                           \
    {                                                                                              \
        REAL(name);                                                                                \
        FAILS(#name, error);                                                                       \
        return fails ? (result)(bad) : real(__VA_ARGS__);                                          \
    }

/* clang-format off */
CALL(void *, mmap64, MAP_FAILED, ENOMEM, (void *at, size_t n, int p, int f, int fd, off64_t o), at, n, p, f, fd, o)
CALL(int, memfd_create, -1, EMFILE, (const char *name, unsigned flags), name, flags)
CALL(int, ftruncate64, -1, ENOSPC, (int fd, off64_t n), fd, n)
CALL(int, fallocate64, -1, ENOSPC, (int fd, int mode, off64_t at, off64_t n), fd, mode, at, n)
CALL(int, socket, -1, EMFILE, (int a, int b, int c), a, b, c)
CALL(int, socketpair, -1, EMFILE, (int a, int b, int c, int fds[2]), a, b, c, fds)
CALL(int, pipe2, -1, EMFILE, (int fds[2], int flags), fds, flags)
CALL(int, bind, -1, EADDRINUSE, (int fd, const struct sockaddr *to, socklen_t n), fd, to, n)
CALL(int, listen, -1, EADDRINUSE, (int fd, int n), fd, n)
CALL(int, getsockname, -1, ENOBUFS, (int fd, struct sockaddr *to, socklen_t *n), fd, to, n)
CALL(int, connect, -1, ENETUNREACH, (int fd, const struct sockaddr *to, socklen_t n), fd, to, n)
CALL(int, accept4, -1, EMFILE, (int fd, struct sockaddr *to, socklen_t *n, int flags), fd, to, n, flags)
CALL(int, setsockopt, -1, ENOBUFS, (int fd, int l, int o, const void *v, socklen_t n), fd, l, o, v, n)
CALL(int, getsockopt, -1, EINVAL, (int fd, int l, int o, void *v, socklen_t *n), fd, l, o, v, n)
CALL(ssize_t, send, -1, ECONNRESET, (int fd, const void *p, size_t n, int flags), fd, p, n, flags)
CALL(ssize_t, recv, -1, ECONNRESET, (int fd, void *p, size_t n, int flags), fd, p, n, flags)
CALL(ssize_t, sendmsg, -1, is_stream(fd) ? ECONNRESET : ENOMEM, (int fd, const struct msghdr *m, int flags), fd, m, flags)
CALL(ssize_t, recvmsg, -1, ECONNRESET, (int fd, struct msghdr *m, int flags), fd, m, flags)
CALL(int, poll, -1, ENOMEM, (struct pollfd *p, nfds_t n, int ms), p, n, ms)
CALL(int, ppoll, -1, ENOMEM, (struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *s), p, n, t, s)
CALL(int, epoll_create1, -1, EMFILE, (int flags), flags)
CALL(int, epoll_ctl, -1, ENOSPC, (int e, int op, int fd, struct epoll_event *v), e, op, fd, v)
CALL(int, epoll_wait, -1, EINTR, (int e, struct epoll_event *v, int n, int ms), e, v, n, ms)
CALL(int, eventfd, -1, EMFILE, (unsigned n, int flags), n, flags)
CALL(int, signalfd, -1, EMFILE, (int fd, const sigset_t *s, int flags), fd, s, flags)
CALL(int, timerfd_create, -1, EMFILE, (clockid_t c, int flags), c, flags)
CALL(int, timerfd_settime, -1, EINVAL, (int fd, int f, const struct itimerspec *n, struct itimerspec *o), fd, f, n, o)
CALL(ssize_t, read, -1, EIO, (int fd, void *p, size_t n), fd, p, n)
CALL(ssize_t, write, -1, EIO, (int fd, const void *p, size_t n), fd, p, n)
CALL(ssize_t, pread64, -1, EIO, (int fd, void *p, size_t n, off64_t at), fd, p, n, at)
CALL(ssize_t, pwrite64, -1, EIO, (int fd, const void *p, size_t n, off64_t at), fd, p, n, at)
CALL(ssize_t, process_vm_readv, -1, EPERM, (pid_t p, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long m, unsigned long f), p, a, n, b, m, f)
CALL(ssize_t, getrandom, -1, ENOSYS, (void *p, size_t n, unsigned flags), p, n, flags)
CALL(int, getifaddrs, -1, ENOBUFS, (struct ifaddrs **out), out)
CALL(int, getaddrinfo, EAI_MEMORY, ENOMEM, (const char *h, const char *s, const struct addrinfo *a, struct addrinfo **out), h, s, a, out)
CALL(FILE *, fopen64, NULL, EMFILE, (const char *path, const char *mode), path, mode)
CALL(DIR *, opendir, NULL, EMFILE, (const char *path), path)
CALL(pid_t, fork, -1, EAGAIN, (void))
CALL(int, pthread_create, EAGAIN, EAGAIN, (pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *p), t, a, f, p)
/* clang-format on */

void *mremap(void *at, size_t bytes, size_t more, int flags, ...)
{
    static void *(*real)(void *, size_t, size_t, int, void *);
    va_list args;

    if (!real)
        real = (void *(*)(void *, size_t, size_t, int, void *))dlsym(RTLD_NEXT, "mremap");
    FAILS("mremap", ENOMEM);
    va_start(args, flags);
    void *to = va_arg(args, void *);
    va_end(args);
    return fails ? MAP_FAILED : real(at, bytes, more, flags, to);
}

int fcntl64(int fd, int call, ...)
{
    static int (*real)(int, int, void *);
    va_list args;

    if (!real)
        real = (int (*)(int, int, void *))dlsym(RTLD_NEXT, "fcntl64");
    FAILS("fcntl", EMFILE);
    va_start(args, call);
    void *argument = va_arg(args, void *);
    va_end(args);
    return fails ? -1 : real(fd, call, argument);
}

int open64(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, unsigned);
    va_list args;

    if (!real)
        real = (int (*)(const char *, int, unsigned))dlsym(RTLD_NEXT, "open64");
    FAILS("open", EMFILE);
    va_start(args, flags);
    const unsigned mode = va_arg(args, unsigned);
    va_end(args);
    return fails ? -1 : real(path, flags, mode);
}

/* ---- Calls that simulations of NICs and GPUs take: they ask here ---- */

bool nth_simulated_fails(const char *call, const void *from)
{
    struct nth_place *place;

    return nth_fails(call, from, ENOMEM, &place);
}
