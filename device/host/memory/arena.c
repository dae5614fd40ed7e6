/* What the PEs of a node share: a file without a name, mapped by each of them. */
#define _GNU_SOURCE
#include "device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/file_limit.h"
#include "runtime/base/log.h"

static int set_size(int fd, size_t bytes)
{
    if (!file_limit_allows(bytes)) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, (off_t)bytes);
}

gshmem_status_t device_arena_create(size_t bytes, int *out)
{
    int fd = descriptor_keep(memfd_create("gshmem", MFD_CLOEXEC | MFD_ALLOW_SEALING));

    if (fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "memfd_create for the symmetric heap: %s", log_errno(errno));
    if (set_size(fd, bytes) != 0) {
        int error = errno;
        close(fd);
        return fail(GSHMEM_ERR_MEMORY,
                    "a file of %zu MiB for the symmetric heap of this host: %s; lower "
                    "GSHMEM_HEAP_MAX%s",
                    bytes >> 20, strerror(error),
                    error == EFBIG ? " or raise the limit on file sizes (ulimit -f)" : "");
    }
    /* A peer that could shrink it could kill the others with SIGBUS. */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        log_debug("sealing the symmetric heap: %s", strerror(errno));
    *out = fd;
    return GSHMEM_OK;
}

/* Objects of the heap can be aligned as far as the heap is; for huge pages 2 MiB would do. */
gshmem_status_t device_arena_map(int fd, size_t bytes, size_t aligned, void **at)
{
    const size_t step = DEVICE_ARENA_ALIGNMENT;
    size_t reserved = bytes + step;
    char *p = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return fail(GSHMEM_ERR_MEMORY,
                    "reserving %zu MiB of address space for the symmetric heaps of this host: %s; "
                    "lower GSHMEM_HEAP_MAX or raise the limit (ulimit -v)",
                    bytes >> 20, strerror(errno));
    size_t before = -((uintptr_t)p + aligned) & (step - 1), after = step - before;
    if (before)
        munmap(p, before);
    if (after)
        munmap(p + before + bytes, after);
    p += before;
    if (mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) ==
        MAP_FAILED) {
        gshmem_status_t status =
            fail(GSHMEM_ERR_MEMORY, "mapping %zu MiB for the symmetric heaps of this host: %s",
                 bytes >> 20, strerror(errno));
        munmap(p, bytes);
        return status;
    }
    /* A core dump reads all that is mapped, and memory that was never touched would come to exist
     * by being read, which takes seconds (docs/decisions/0020). */
    madvise(p, bytes, MADV_DONTDUMP);
    *at = p;
    return GSHMEM_OK;
}

int device_arena_map_at(int fd, size_t offset, size_t bytes, void *at)
{
    void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, (off_t)offset);

    if (p == MAP_FAILED)
        return errno;
    if (p != at) { /* systems before 4.17 take the address for a wish */
        munmap(p, bytes);
        return EEXIST;
    }
    madvise(p, bytes, MADV_DONTDUMP); /* as all of it */
    return 0;
}

void device_arena_unmap(void *at, size_t bytes)
{
    munmap(at, bytes);
}

/* Whether the file has memory in this range. An error counts as yes, except that no memory follows
 * up to the end of the file. */
static bool has_memory(int fd, size_t offset, size_t bytes)
{
    off_t first = lseek(fd, (off_t)offset, SEEK_DATA);

    return first < 0 ? errno != ENXIO : (size_t)first < offset + bytes;
}

/* Objects that nobody has touched are freed, too, and the question takes a small part of the time
 * of the answer (docs/decisions/0042). */
gshmem_status_t device_arena_discard(int fd, size_t offset, size_t bytes)
{
    if (!has_memory(fd, offset, bytes))
        return GSHMEM_OK;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) != 0)
        return fail(GSHMEM_ERR_SYSTEM, "giving back %zu KiB of the symmetric heap: %s", bytes >> 10,
                    strerror(errno));
    return GSHMEM_OK;
}
