#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fiber.h"
#include "nth.h"
#include "wrap.h"

/* Part of a key for a shared word that no address has. */
#define SHARED (UINT64_C(1) << 63)

struct mapping {
    const struct pe *pe;
    uintptr_t at;
    size_t bytes;
    uint64_t file, offset;
};

/* A lock on a byte of a file, until its process dies. */
struct byte_lock {
    const struct pe *pe;
    uint64_t file, byte;
};

bool machine_is_copied;

static struct {
    struct mapping *mapping;
    int mappings;
    struct byte_lock *lock;
    int locks;
} machine;

static void *one_more(void *table, int n, size_t bytes)
{
    void *more = n & (n - 1) ? table : realloc(table, (n ? 2 * (size_t)n : 1) * bytes);

    if (!more) {
        perror("simulation: mappings");
        exit(2);
    }
    return more;
}

static uint64_t file_of(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 ? (uint64_t)s.st_ino : 0;
}

const void *machine_word(const struct pe *pe, const void *word)
{
    for (int i = 0; i < machine.mappings; i++) {
        const struct mapping *m = &machine.mapping[i];
        if (m->pe == pe && (uintptr_t)word - m->at < m->bytes)
            return (const void *)(uintptr_t)(SHARED | m->file << 44 >> 1 |
                                             (m->offset + (uintptr_t)word - m->at));
    }
    return word;
}

bool machine_is_shared(const void *word)
{
    return (uintptr_t)word & SHARED;
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (NTH(mmap))
        return MAP_FAILED;
    if (machine_is_copied && flags & MAP_SHARED)
        flags ^= MAP_SHARED | MAP_PRIVATE;
    void *got = mmap(at, bytes, protection, flags, fd, offset);

    if (!fiber_current || got == MAP_FAILED || !(flags & MAP_SHARED) || fd < 0)
        return got;
    machine.mapping = one_more(machine.mapping, machine.mappings, sizeof *machine.mapping);
    machine.mapping[machine.mappings++] = (struct mapping){fiber_current->pe, (uintptr_t)got, bytes,
                                                           file_of(fd), (uint64_t)offset};
    return got;
}

int __wrap_munmap(void *at, size_t bytes)
{
    for (int i = 0; i < machine.mappings; i++) {
        if (machine.mapping[i].at == (uintptr_t)at)
            machine.mapping[i--] = machine.mapping[--machine.mappings];
    }
    return munmap(at, bytes);
}

/* Locks of processes are locks of PEs here, and end with them. */
static int lock_byte(int fd, int call, struct flock *l)
{
    const uint64_t file = file_of(fd), byte = (uint64_t)l->l_start;

    for (int i = 0; i < machine.locks; i++) {
        const struct byte_lock *held = &machine.lock[i];
        if (held->file != file || held->byte != byte || held->pe->dead || held->pe->ended)
            continue;
        if (call == F_GETLK)
            return 0; /* l_type says so already */
        errno = EAGAIN;
        return -1;
    }
    if (call == F_GETLK) {
        l->l_type = F_UNLCK;
        return 0;
    }
    machine.lock = one_more(machine.lock, machine.locks, sizeof *machine.lock);
    machine.lock[machine.locks++] = (struct byte_lock){fiber_current->pe, file, byte};
    return 0;
}

int __wrap_fcntl64(int fd, int call, ...)
{
    if (NTH(fcntl))
        return -1;
    va_list args;

    va_start(args, call);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (fiber_current && (call == F_OFD_SETLK || call == F_GETLK))
        return lock_byte(fd, call, argument);
    return fcntl(fd, call, argument);
}
