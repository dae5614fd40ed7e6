#define _GNU_SOURCE
#include "runtime/memory/symmetric_host.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* One line of /proc/self/maps. */
struct area {
    uintptr_t begin, end;
    size_t offset;
    char rights[5];
    unsigned major, minor;
    unsigned long inode;
    char name[16]; /* the beginning of it */
};

static bool read_area(FILE *maps, struct area *a)
{
    char line[512];

    if (!fgets(line, sizeof line, maps))
        return false;
    bool whole = strchr(line, '\n');
    a->name[0] = 0;
    int got = sscanf(line, "%zx-%zx %4s %zx %x:%x %lu %15s", &a->begin, &a->end, a->rights,
                     &a->offset, &a->major, &a->minor, &a->inode, a->name);
    for (int c = 0; !whole && c != '\n' && c != EOF;)
        c = getc(maps);
    return got >= 7;
}

/* Calls `fits` for all areas from at to at + bytes, in their order; false: one does not fit, or
 * there is a hole. */
static bool each_area(const void *at, size_t bytes,
                      bool (*fits)(const struct area *a, void *context), void *context)
{
    uintptr_t next = (uintptr_t)at, end = next + bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    struct area a;
    bool all = maps != NULL;

    while (all && next < end && read_area(maps, &a)) {
        if (a.end <= next)
            continue;
        all = a.begin <= next && fits(&a, context);
        next = a.end;
    }
    if (maps)
        fclose(maps);
    return all && next >= end;
}

/* ---- Sharing ---- */

struct reason {
    char *why;
    size_t size;
};

static bool is_private(const struct area *a, void *context)
{
    const struct reason *r = context;

    if (a->inode || a->rights[3] != 'p')
        snprintf(r->why, r->size, "at %#zx it is shared memory, or a file's", a->begin);
    else if (strncmp(a->rights, "rw-", 3) != 0)
        snprintf(r->why, r->size, "at %#zx it is not to be read and written alone (%.3s)", a->begin,
                 a->rights);
    else if (strncmp(a->name, "[stack", 6) == 0)
        snprintf(r->why, r->size, "it is on the stack");
    else
        return true;
    return false;
}

bool symmetric_host_can(const void *at, size_t bytes, char *why, size_t why_size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct reason reason = {why, why_size};

    if ((uintptr_t)at % page || bytes % page) {
        snprintf(why, why_size, "it begins and ends where pages of %zu B do not", page);
        return false;
    }
    snprintf(why, why_size, "this process has less memory there");
    return each_area(at, bytes, is_private, &reason);
}

bool symmetric_host_share(void *at, size_t bytes, char *shared, int fd, size_t offset)
{
    memcpy(shared, at, bytes);
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == at;
}

/* ---- Making private again ---- */

struct expected {
    struct stat file;
    uintptr_t at;
    size_t offset;
};

static bool is_shared(const struct area *a, void *context)
{
    const struct expected *e = context;
    uintptr_t begin = a->begin > e->at ? a->begin : e->at;

    return a->inode == e->file.st_ino && a->major == major(e->file.st_dev) &&
           a->minor == minor(e->file.st_dev) &&
           a->offset + (begin - a->begin) == e->offset + (begin - e->at);
}

bool symmetric_host_unshare(void *at, size_t bytes, int fd, size_t offset)
{
    struct expected e = {.at = (uintptr_t)at, .offset = offset};

    if (fstat(fd, &e.file) != 0 || !each_area(at, bytes, is_shared, &e))
        return false;
    char *copy =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return false;
    memcpy(copy, at, bytes);
    if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at)
        return true;
    munmap(copy, bytes);
    return false;
}
