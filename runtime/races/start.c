/* The memory that all PEs share: PE 0 makes it, the others find it in that process. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/unseen.h"
#include "runtime/memory/map.h"
#include "runtime/races/parts.h"
#include "runtime/races/races.h"

/* Of cells for the variables of a PE: addresses only, as long as they are not used. */
enum { DATA_MOST = 1 << 30 };

#define MEMFD "gshmem-races"

static size_t align_up(size_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static size_t header_bytes(int n)
{
    return align_up(sizeof(struct races_shared) + (size_t)n * sizeof(struct races_pe));
}

/* All but the cells. */
static size_t fixed_bytes(const struct races *r)
{
    return header_bytes(r->n) + align_up((size_t)r->n * RACES_KEPT * r->snapshot_bytes);
}

static struct races *new_races(struct job *j)
{
    struct races *r = calloc(1, sizeof *r);

    if (!r || !(r->known = races_known_new())) {
        free(r);
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->me = j->pe;
    r->n = j->n_pes;
    r->words = (uint32_t)(r->n + r->n * r->n);
    r->snapshot_bytes = sizeof(struct races_snapshot) + r->words * sizeof(uint32_t);
    r->epoch = 1;
    r->fd = -1;
    return r;
}

static gshmem_status_t map_shared(struct races *r)
{
    r->bytes = fixed_bytes(r);
    r->shared = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (r->shared == MAP_FAILED) {
        r->shared = NULL;
        return fail(GSHMEM_ERR_MEMORY, "start-up: cannot map %zu MiB for GSHMEM_CHECK=races: %s",
                    r->bytes >> 20, log_errno(errno));
    }
    r->own = &r->shared->pe[r->me];
    r->clock = r->own->clock;
    r->snapshots = (char *)r->shared + header_bytes(r->n);
    return GSHMEM_OK;
}

gshmem_status_t races_open(struct job *j, uint64_t token, int32_t *pid)
{
    struct races *r;
    gshmem_status_t status;

    if (j->pe != 0 || settings_number(SETTING_CHECK) != CHOICE_CHECK_RACES)
        return GSHMEM_OK;
    if (j->n_pes > RACES_PES)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "start-up: GSHMEM_CHECK=races follows at most %d PEs, and the job has %d",
                    RACES_PES, j->n_pes);
    if (!(r = new_races(j)))
        return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for GSHMEM_CHECK=races");
    j->races = r;
    if ((r->fd = memfd_create(MEMFD, MFD_CLOEXEC)) < 0 ||
        ftruncate(r->fd, (off_t)fixed_bytes(r)) != 0)
        return fail(GSHMEM_ERR_MEMORY, "start-up: no memory to share for GSHMEM_CHECK=races: %s",
                    log_errno(errno));
    if ((status = map_shared(r)))
        return status;
    r->shared->token = token;
    *pid = (int32_t)getpid();
    return GSHMEM_OK;
}

/* The file that the process has under the memfd's name, with the job's token; -1: none. */
static int races_find_file(uint64_t token, const char *folder)
{
    char path[300], name[64];
    const struct dirent *entry;
    uint64_t theirs;
    ssize_t length;
    int fd = -1;
    DIR *d = opendir(folder);

    while (d && fd < 0 && (entry = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        length = readlink(path, name, sizeof name - 1);
        name[length > 0 ? length : 0] = 0;
        if (strncmp(name, "/memfd:" MEMFD, strlen("/memfd:" MEMFD)) != 0)
            continue;
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd >= 0 && (pread(fd, &theirs, sizeof theirs, 0) != sizeof theirs || theirs != token)) {
            close(fd);
            fd = -1;
        }
    }
    if (d)
        closedir(d);
    return fd;
}

static gshmem_status_t open_first(struct races *r, uint64_t token, int32_t pid)
{
    char folder[64];

    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    r->fd = races_find_file(token, folder);
    if (r->fd < 0)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "start-up: GSHMEM_CHECK=races follows jobs on one machine, and this PE does "
                    "not find PE 0 there (process %d): run all PEs on one machine, outside of "
                    "containers of their own, as the same user",
                    pid);
    return map_shared(r);
}

gshmem_status_t races_join(struct job *j, uint64_t token, int32_t pid)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!pid) {
        if (settings_number(SETTING_CHECK) == CHOICE_CHECK_RACES)
            log_warn("GSHMEM_CHECK=races is not set for PE 0, which decides: the job is not "
                     "checked");
        return GSHMEM_OK;
    }
    if (!j->races) {
        if (!(j->races = new_races(j)))
            return fail(GSHMEM_ERR_MEMORY, "start-up: out of memory for GSHMEM_CHECK=races");
        status = open_first(j->races, token, pid);
    }
    if (!status)
        j->races->clock[j->races->me] = 1;
    return status;
}

/* The cells: all PEs come to the same size, whoever is the first to make the file as large. */
gshmem_status_t races_start(struct job *j)
{
    struct races *r = j->races;
    const uint64_t heap = j->map->segment[SEGMENT_HEAP].bytes;
    uint64_t others = 0;
    size_t bytes;
    void *cells;

    if (!r)
        return GSHMEM_OK;
    r->data_cell = heap / 8 + 1;
    r->cells_each = r->data_cell + DATA_MOST / 8;
    bytes = (size_t)r->n * r->cells_each * sizeof *r->cells;
    if (!atomic_compare_exchange_strong(&r->shared->cells_each, &others, r->cells_each) &&
        others != r->cells_each)
        return fail(GSHMEM_ERR_MISMATCH,
                    "start-up: heaps of different sizes cannot be followed by GSHMEM_CHECK=races: "
                    "set GSHMEM_HEAP_SIZE alike for all PEs");
    if (fallocate(r->fd, 0, (off_t)(r->bytes + bytes) - 1, 1) != 0)
        return fail(GSHMEM_ERR_MEMORY,
                    "start-up: no file of %zu GiB for GSHMEM_CHECK=races: %s; GSHMEM_HEAP_SIZE "
                    "makes heaps smaller",
                    bytes >> 30, log_errno(errno));
    cells = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, r->fd,
                 (off_t)r->bytes);
    if (cells == MAP_FAILED)
        return fail(GSHMEM_ERR_MEMORY,
                    "start-up: no %zu GiB of addresses for GSHMEM_CHECK=races: %s; "
                    "GSHMEM_HEAP_SIZE makes heaps smaller",
                    bytes >> 30, log_errno(errno));
    r->cells = cells;
    races_follow(j);
    return GSHMEM_OK;
}

bool races_turn_off(struct job *j)
{
    return atomic_exchange_explicit(&j->races->shared->off, 1, memory_order_relaxed) == 0;
}

void races_conclude(struct job *j)
{
    if (j->races && j->races->found)
        unseen_add(j->races->first);
}

void races_stop(struct job *j)
{
    struct races *r = j->races;

    if (!r)
        return;
    races_close(j);
    j->races = NULL;
    if (r->cells)
        munmap(r->cells, (size_t)r->n * r->cells_each * sizeof *r->cells);
    if (r->shared)
        munmap(r->shared, r->bytes);
    if (r->fd >= 0)
        close(r->fd);
    pthread_mutex_destroy(&r->lock);
    free(r->object);
    free(r->known);
    free(r);
}
