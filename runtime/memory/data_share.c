/* Moves the program's writable data into the shared file, while the program runs.
 *
 * An executable's data segment contains more than the program's variables, and moving that does no
 * harm: variables of libc that the linker copied there (stdout, environ) keep their addresses, and
 * only this process uses them; private futexes, as in mutexes and stdio, are keyed by address space
 * and address. The segment does not contain thread-local storage and the kernel's per-thread areas,
 * what relocation has made read-only (it stays where it is), and the heap of brk, which begins at
 * the next page or later.
 *
 * In a statically linked program the segment also contains libc's own state and this file's.
 * Invariant: between the copy and the mapping, no code here writes a variable that is neither on
 * the stack nor thread-local. Other threads that write variables during init would lose what they
 * wrote. */
#define _GNU_SOURCE
#include "runtime/memory/data.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/file_limit.h"
#include "runtime/base/log.h"
#include "runtime/memory/map.h"

/* Segments that are in a file. They outlive the job, and so does this table. */
static struct moved {
    uintptr_t base;
    size_t bytes;
    size_t offset;
    int fd; /* a file of this process's own, which alone shows which pages were ever touched */
    int protection;
} moved[DATA_SEGMENT_MAX];
static int moved_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Copying pages that were touched ---- */

/* A system call, not pwrite: a sanitizer would report the red zones between variables. */
static bool write_all(int fd, uintptr_t from, size_t bytes, size_t offset)
{
    while (bytes) {
        long n = syscall(SYS_pwrite64, fd, from, bytes, offset);
        if (n <= 0 && errno != EINTR)
            return false;
        if (n > 0) {
            from += (size_t)n;
            offset += (size_t)n;
            bytes -= (size_t)n;
        }
    }
    return true;
}

struct pages {
    size_t bytes;    /* bytes of a page */
    int pagemap;     /* /proc/self/pagemap; -1: not available */
    uintptr_t first; /* the page of entry[0] */
    size_t known;
    uint64_t entry[256];
};

/* Whether the anonymous memory at page was never touched, so that it need not be read: large arrays
 * that a program does not use are most of a .bss. */
static bool page_untouched(struct pages *p, uintptr_t page)
{
    static const uint64_t present = 1ull << 63, swapped = 1ull << 62;
    size_t i = (page - p->first) / p->bytes;

    if (p->pagemap < 0)
        return false;
    if (i >= p->known) {
        ssize_t n = pread(p->pagemap, p->entry, sizeof p->entry,
                          (off_t)(page / p->bytes * sizeof p->entry[0]));
        p->first = page;
        p->known = n < 0 ? 0 : (size_t)n / sizeof p->entry[0];
        if (p->known == 0)
            return false;
        i = 0;
    }
    return !(p->entry[i] & (present | swapped));
}

/* Not instrumented, because it reads red zones. */
__attribute__((no_sanitize("address", "thread"))) static bool page_is_zero(const struct pages *p,
                                                                           uintptr_t page)
{
    const uint64_t *word = (const uint64_t *)page;

    for (size_t i = 0; i < p->bytes / sizeof *word; i++) {
        if (word[i])
            return false;
    }
    return true;
}

/* Copies the pages of private memory that are not zero, in runs. */
static bool copy_private(const struct data_segment *s, int fd, size_t offset)
{
    struct pages pages = {
        .bytes = (size_t)sysconf(_SC_PAGESIZE),
        .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
    };
    uintptr_t end = s->base + s->bytes, run = s->base;
    bool copied = true;

    for (uintptr_t page = s->base; page < end && copied; page += pages.bytes) {
        bool blank = page - s->base >= s->initialised && page_untouched(&pages, page);
        if (blank || page_is_zero(&pages, page)) {
            copied = write_all(fd, run, page - run, offset + (run - s->base));
            run = page + pages.bytes;
        }
    }
    copied = copied && write_all(fd, run, end - run, offset + (run - s->base));
    if (pages.pagemap >= 0)
        close(pages.pagemap);
    return copied;
}

/* The next range of a moved segment that has pages, as offsets from its base; false: no more. */
static bool next_extent(const struct moved *m, size_t from, size_t *begin, size_t *end)
{
    off_t data = lseek(m->fd, (off_t)(m->offset + from), SEEK_DATA);

    if (data < 0 || (size_t)data >= m->offset + m->bytes)
        return false;
    off_t hole = lseek(m->fd, data, SEEK_HOLE);
    *begin = (size_t)data - m->offset;
    *end = hole < 0 ? m->bytes : (size_t)hole - m->offset;
    if (*end > m->bytes)
        *end = m->bytes;
    return true;
}

static bool copy_moved(const struct moved *m, int fd, size_t offset)
{
    size_t begin, end = 0;

    while (end < m->bytes && next_extent(m, end, &begin, &end)) {
        if (!write_all(fd, m->base + begin, end - begin, offset + begin))
            return false;
    }
    return true;
}

/* ---- A child of fork gets a copy of its own ---- */

/* The parent makes the copy, so that it is as of the fork, whatever the parent or peers do next.
 * The pointer is not in the data segment itself: in a static program parent and child share that
 * until it is replaced. */
static _Thread_local void *copy_for_child[DATA_SEGMENT_MAX];

static void *private_copy(const struct moved *m)
{
    size_t begin, end = 0;
    char *copy = mmap(NULL, m->bytes, m->protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return NULL;
    while (end < m->bytes && next_extent(m, end, &begin, &end)) {
        for (size_t at = begin; at < end;) {
            ssize_t n = pread(m->fd, copy + at, end - at, (off_t)(m->offset + at));
            if (n <= 0) {
                munmap(copy, m->bytes);
                return NULL;
            }
            at += (size_t)n;
        }
    }
    return copy;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < moved_count; i++) {
        copy_for_child[i] = private_copy(&moved[i]);
        if (!copy_for_child[i])
            log_warn("fork: no memory for the child's copy of %zu bytes of variables: it shares "
                     "them with this PE",
                     moved[i].bytes);
    }
}

static void after_fork_in_parent(void)
{
    for (int i = 0; i < moved_count; i++) {
        if (copy_for_child[i])
            munmap(copy_for_child[i], moved[i].bytes);
    }
    pthread_mutex_unlock(&lock);
}

static bool is_parents;

bool data_is_parents(void)
{
    return is_parents;
}

static void after_fork_in_child(void)
{
    for (int i = 0; i < moved_count; i++) {
        is_parents |= !copy_for_child[i];
        if (copy_for_child[i])
            mremap(copy_for_child[i], moved[i].bytes, moved[i].bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                   (void *)moved[i].base);
    }
    for (int i = 0; i < moved_count; i++)
        close(moved[i].fd);
    moved_count = 0;
    pthread_mutex_unlock(&lock);
}

static void data_share_watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- Moving ---- */

static struct moved *find_moved(const struct data_segment *s)
{
    for (int i = 0; i < moved_count; i++) {
        if (moved[i].base == s->base && moved[i].bytes == s->bytes)
            return &moved[i];
    }
    return NULL;
}

static gshmem_status_t data_share_move(const struct data_segment *s, int fd, size_t offset)
{
    struct moved *before = find_moved(s);

    if (!before && moved_count == DATA_SEGMENT_MAX)
        return fail(GSHMEM_ERR_UNSUPPORTED, "symmetric variables: more than %d segments",
                    DATA_SEGMENT_MAX);

    if (!file_limit_allows(offset + s->bytes))
        return fail(
            GSHMEM_ERR_SYSTEM,
            "symmetric variables: %zu MiB into the file that this node's PEs share: %s; this PE's "
            "limit on file sizes is lower than that of the node's lowest PE (ulimit -f)",
            (offset + s->bytes) >> 20, strerror(EFBIG));

    struct moved after = {s->base, s->bytes, offset, fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1),
                          s->protection};
    if (after.fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "symmetric variables: duplicating a descriptor: %s",
                    log_errno(errno));

    /* From here to the mapping: no writes to variables. */
    bool ok = before ? copy_moved(before, fd, offset) : copy_private(s, fd, offset);
    ok = ok && mmap((void *)s->base, s->bytes, s->protection, MAP_SHARED | MAP_FIXED, fd,
                    (off_t)offset) != MAP_FAILED;
    if (!ok) {
        gshmem_status_t status =
            fail(GSHMEM_ERR_SYSTEM,
                 "symmetric variables: moving %zu bytes at %#lx into shared memory: %s", s->bytes,
                 (unsigned long)s->base, strerror(errno));
        close(after.fd);
        return status;
    }
    if (before)
        close(before->fd);
    *(before ? before : &moved[moved_count++]) = after;
    return GSHMEM_OK;
}

gshmem_status_t data_share(const struct data_segment *segment, int fd, size_t offset)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, data_share_watch_forks);
    pthread_mutex_lock(&lock);
    gshmem_status_t status = data_share_move(segment, fd, offset);
    pthread_mutex_unlock(&lock);
    return status;
}
