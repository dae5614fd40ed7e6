#define _GNU_SOURCE
#include "runtime/node/liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"

static struct flock lock_of(int index)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};
}

/* Opens a file description of this process's own: the descriptor that was received shares the
 * leader's. */
static int open_again(int fd)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return descriptor_keep(open(path, O_RDWR | O_CLOEXEC));
}

gshmem_status_t liveness_begin(struct liveness *l, int fd, int index)
{
    struct flock lock = lock_of(index);
    int own = open_again(fd), error = errno;
    const long page = sysconf(_SC_PAGESIZE);
    struct stat s;

    if (own < 0)
        return fail(GSHMEM_ERR_SYSTEM,
                    "start-up: opening the file of the symmetric heap again: %s%s",
                    log_errno(error), error == ENOENT ? " (is /proc mounted?)" : "");
    void *at = mmap(NULL, (size_t)page, PROT_NONE, MAP_SHARED, own, 0);
    const bool fine = at != MAP_FAILED && madvise(at, (size_t)page, MADV_DONTFORK) == 0 &&
                      fstat(fd, &s) == 0 && fcntl(own, F_OFD_SETLK, &lock) == 0;
    error = errno;
    close(own); /* the mapping keeps the description */
    if (!fine) {
        if (at != MAP_FAILED)
            munmap(at, (size_t)page);
        return fail(GSHMEM_ERR_SYSTEM, "start-up: locking this PE's byte of the symmetric heap: %s",
                    strerror(error));
    }
    *l = (struct liveness){.mapping = at, .device = s.st_dev, .file = s.st_ino};
    return GSHMEM_OK;
}

/* The number may stand for another file by now, whose locks mean nothing. */
static bool is_the_file(const struct liveness *l, int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && s.st_dev == l->device && s.st_ino == l->file;
}

bool liveness_of(struct liveness *l, int fd, int index)
{
    struct flock lock = lock_of(index);

    if (fcntl(fd, F_GETLK, &lock) == 0 && (lock.l_type != F_UNLCK || is_the_file(l, fd)))
        return lock.l_type != F_UNLCK;
    if (!is_the_file(l, fd) && !l->closed) {
        l->closed = true;
        log_line(LOG_WARN,
                 "the program has closed descriptor %d, which is the library's: that a PE of this "
                 "node dies is not noticed any more",
                 fd);
    }
    return true;
}

void liveness_end(struct liveness *l)
{
    if (l->mapping)
        munmap(l->mapping, (size_t)sysconf(_SC_PAGESIZE));
    l->mapping = NULL;
}
