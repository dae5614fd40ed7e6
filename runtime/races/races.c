#define _GNU_SOURCE
#include "runtime/races/races.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gshmem.h"
#include "gshmem/races.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/unseen.h"
#include "runtime/job/thread.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"
#include "runtime/races/parts.h"
#include "runtime/teams/team.h"

/* ---- The memory that all share ---- */

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
static int find_file(uint64_t token, const char *folder)
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
    r->fd = find_file(token, folder);
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
    return GSHMEM_OK;
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

/* ---- Accesses ---- */

/* With the lock. true: *found conflicts, and is the first of the call that does. */
static bool enter(struct races *r, uint16_t site, enum races_kind kind, unsigned flags,
                  uint32_t snapshot, const void *at, size_t bytes, int pe,
                  struct races_pair *found)
{
    const struct races_slot now = {
        .epoch = flags & RACES_OPEN ? r->epoch : r->clock[r->me] - (snapshot != 0),
        .snapshot = snapshot,
        .site = site,
        .pe = (uint8_t)r->me,
        .kind = (uint8_t)kind,
        .flags = (uint8_t)flags,
    };

    return races_enter_access(r, at, bytes, pe, now, found);
}

/* Both sides of an operation; a NULL side is none. */
struct sides {
    enum races_kind kind; /* there */
    unsigned flags;
    const void *there;
    enum races_kind local_kind;
    unsigned local_flags;
    const void *local;
    size_t bytes;
    int pe;
};

static void enter_sides(const struct races_call *call, const struct sides *s)
{
    struct races *r = job->races;
    struct races_pair found[2];
    bool races[2] = {false, false};

    if (r->shared->off || this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    const uint16_t site = races_site_of(r, call);
    const bool releases = s->kind == RACES_PUT || s->kind == RACES_ATOMIC;
    if (s->local)
        races[0] = enter(r, site, s->local_kind, s->local_flags, 0, s->local, s->bytes, r->me,
                         &found[0]);
    if (s->there)
        races[1] = enter(r, site, s->kind, s->flags, releases ? races_snapshot(r, s->pe) : 0,
                         s->there, s->bytes, s->pe, &found[1]);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < 2; i++) {
        if (races[i])
            races_report(r, &found[i]);
    }
}

void races_access(const struct races_call *call, enum races_kind kind, unsigned flags,
                  const void *at, size_t bytes, int pe)
{
    enter_sides(call, &(struct sides){.kind = kind, .flags = flags, .there = at, .bytes = bytes,
                                      .pe = pe});
}

void races_put(const char *name, const void *dest, const void *source, size_t bytes, int pe,
               bool nbi)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = RACES_PUT,
                                .flags = RACES_OPEN | (nbi ? RACES_NBI : 0),
                                .there = dest,
                                .local_kind = RACES_READ,
                                .local_flags = nbi ? RACES_OPEN | RACES_NBI : 0,
                                .local = source,
                                .bytes = bytes,
                                .pe = pe});
}

/* The signal's snapshot is taken after this one, and so covers it. */
void races_put_signalled(const char *name, const void *dest, const void *source, size_t bytes,
                         int pe, bool nbi)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = RACES_PUT,
                                .there = dest,
                                .local_kind = RACES_READ,
                                .local_flags = nbi ? RACES_OPEN | RACES_NBI : 0,
                                .local = source,
                                .bytes = bytes,
                                .pe = pe});
}

void races_get(const char *name, void *dest, const void *source, size_t bytes, int pe, bool nbi)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = RACES_GET,
                                .flags = nbi ? RACES_OPEN : 0,
                                .there = source,
                                .local_kind = RACES_WRITE,
                                .local_flags = nbi ? RACES_OPEN | RACES_NBI : 0,
                                .local = dest,
                                .bytes = bytes,
                                .pe = pe});
}

void races_atomic(const char *name, enum gshmem_amo op, const void *target, size_t bytes, int pe,
                  bool fetches)
{
    enter_sides(&(struct races_call){name, NULL},
                &(struct sides){.kind = op == GSHMEM_AMO_FETCH ? RACES_FETCH : RACES_ATOMIC,
                                .flags = fetches ? 0 : RACES_OPEN,
                                .there = target,
                                .bytes = bytes,
                                .pe = pe});
}

void races_see(const void *at, size_t bytes, int pe)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    races_see_cells(r, at, bytes, pe);
    pthread_mutex_unlock(&r->lock);
}

/* ---- Order ---- */

void races_fence(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    r->fenced = r->epoch++;
    pthread_mutex_unlock(&r->lock);
}

void races_flush(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    r->flushed = r->epoch++;
    pthread_mutex_unlock(&r->lock);
}

void races_quiet(void)
{
    struct races *r = job->races;

    if (this_thread.unfollowed)
        return;
    pthread_mutex_lock(&r->lock);
    r->fenced = r->quiet = r->epoch++;
    for (int pe = 0; pe < r->n; pe++)
        __atomic_store_n(&r->clock[races_entry(r, r->me, pe)], r->quiet, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&r->lock);
}

static void arrive(gshmem_team_t team)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    const uint32_t number = ++r->round[team];
    struct races_round *round = &r->own->round[team][number % RACES_ROUNDS];
    atomic_store_explicit(&round->snapshot, races_snapshot(r, -1), memory_order_relaxed);
    /* release: pairs with the acquire in races_leave */
    atomic_store_explicit(&round->number, number, memory_order_release);
    pthread_mutex_unlock(&r->lock);
}

/* A member that is some rounds ahead has another round there: then all that it has done counts. */
static void leave_member(struct races *r, gshmem_team_t team, int pe, uint32_t number)
{
    struct races_round *round = &r->shared->pe[pe].round[team][number % RACES_ROUNDS];
    const uint32_t there = atomic_load_explicit(&round->number, memory_order_acquire);

    if (pe != r->me)
        races_merge(r, r->clock, pe,
                    there == number
                        ? atomic_load_explicit(&round->snapshot, memory_order_relaxed)
                        : 0);
}

static void leave(gshmem_team_t team, enum races_members members, int root)
{
    const struct team *t = job->team[team];
    struct races *r = job->races;
    int first = members == RACES_ROOT ? root : 0;
    int end = members == RACES_ROOT ? root + 1 : members == RACES_UP_TO_ME ? t->my_pe : t->n_pes;

    pthread_mutex_lock(&r->lock);
    for (int i = first; i < end && i < t->n_pes; i++)
        leave_member(r, team, t->members[i], r->round[team]);
    pthread_mutex_unlock(&r->lock);
}

void races_arrive(gshmem_team_t team)
{
    arrive(team);
    this_thread.unfollowed++;
}

void races_leave(gshmem_team_t team, enum races_members members, int root, gshmem_status_t status)
{
    this_thread.unfollowed--;
    if (!status)
        leave(team, members, root);
}

void races_collective(const char *name, const void *dest, size_t to, const void *source,
                      size_t from)
{
    const struct races_call call = {name, NULL};
    const int me = job->races->me;

    if (source && from)
        races_access(&call, RACES_COLLECTED, 0, source, from, me);
    if (dest && to)
        races_access(&call, RACES_DISTRIBUTED, 0, dest, to, me);
}

void races_new_team(gshmem_team_t team)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    r->round[team] = 0;
    pthread_mutex_unlock(&r->lock);
}

/* ---- Objects ---- */

void races_forget(const void *at, size_t bytes)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    races_clear_cells(r, at, bytes);
    for (size_t i = 0; i < r->objects; i++) {
        if (r->object[i].at == (uintptr_t)at)
            r->object[i] = r->object[--r->objects];
    }
    pthread_mutex_unlock(&r->lock);
}

/* Without memory for it, reports have the address alone. */
void races_enter(const void *at, size_t bytes)
{
    struct races *r = job->races;

    pthread_mutex_lock(&r->lock);
    if (r->objects == r->objects_room) {
        const size_t room = r->objects_room ? 2 * r->objects_room : 64;
        struct races_object *more = realloc(r->object, room * sizeof *more);
        if (more) {
            r->object = more;
            r->objects_room = room;
        }
    }
    if (r->objects < r->objects_room)
        r->object[r->objects++] = (struct races_object){(uintptr_t)at, bytes};
    pthread_mutex_unlock(&r->lock);
}

/* ---- Loads and stores of the program: hooks.c ---- */

static bool is_followed(const void *at)
{
    const struct memory_map *map;

    if (!job || !job->races)
        return false;
    map = job->map;
    for (int i = SEGMENT_HEAP; i < map->segments; i++) {
        if ((uintptr_t)at - map->segment[i].base < map->segment[i].bytes)
            return true;
    }
    return false;
}

void gshmem_path_loaded(const void *at, size_t bytes, const void *from)
{
    if (is_followed(at))
        races_access(&(struct races_call){"load", from}, RACES_READ, 0, at, bytes,
                     job->races->me);
}

void gshmem_path_stored(const void *at, size_t bytes, const void *from)
{
    if (is_followed(at))
        races_access(&(struct races_call){"store", from}, RACES_WRITE, 0, at, bytes,
                     job->races->me);
}

void gshmem_path_synchronized(const void *at, size_t bytes)
{
    if (is_followed(at))
        races_see(at, bytes, job->races->me);
}

void gshmem_path_updated(const void *at, size_t bytes, const void *from)
{
    if (is_followed(at))
        races_access(&(struct races_call){"atomic", from}, RACES_ATOMIC, 0, at, bytes,
                     job->races->me);
}

/* ---- Operations of kernels ---- */

/* Code with kernels that was compiled so, in this process. */
static atomic_uint followed_modules;

void races_look_at_kernels(struct job *j)
{
    if (!j->races || atomic_load(&followed_modules))
        return;
    j->races->shared->off = 1;
    log_error("GSHMEM_CHECK=races: the program has kernels that are not followed, so that the job "
              "is not checked: compile them by gshmemcc --device=host --check=races");
}

void gshmem_path_follow(enum gshmem_followed what, const void *there, const void *local,
                        size_t bytes, int pe)
{
    if (what == GSHMEM_FOLLOWED_MODULE)
        atomic_fetch_add(&followed_modules, 1);
    if (!job || !job->races)
        return;
    switch (what) {
    case GSHMEM_FOLLOWED_MODULE:
        break;
    case GSHMEM_FOLLOWED_PUT:
    case GSHMEM_FOLLOWED_PUT_NBI:
        races_put(what == GSHMEM_FOLLOWED_PUT ? "put" : "put_nbi", there, local, bytes, pe,
                  what == GSHMEM_FOLLOWED_PUT_NBI);
        break;
    case GSHMEM_FOLLOWED_PUT_SIGNAL:
    case GSHMEM_FOLLOWED_PUT_SIGNAL_NBI:
        races_put_signalled(what == GSHMEM_FOLLOWED_PUT_SIGNAL ? "put_signal" : "put_signal_nbi",
                            there, local, bytes, pe, what == GSHMEM_FOLLOWED_PUT_SIGNAL_NBI);
        break;
    case GSHMEM_FOLLOWED_GET:
    case GSHMEM_FOLLOWED_GET_NBI:
        races_get(what == GSHMEM_FOLLOWED_GET ? "get" : "get_nbi", (void *)(uintptr_t)local,
                  there, bytes, pe, what == GSHMEM_FOLLOWED_GET_NBI);
        break;
    case GSHMEM_FOLLOWED_SIGNAL:
        races_atomic("signal", GSHMEM_AMO_ADD, there, bytes, pe, false);
        break;
    case GSHMEM_FOLLOWED_ATOMIC:
    case GSHMEM_FOLLOWED_ATOMIC_FETCH:
        races_atomic("atomic", GSHMEM_AMO_ADD, there, bytes, pe,
                     what == GSHMEM_FOLLOWED_ATOMIC_FETCH);
        break;
    case GSHMEM_FOLLOWED_FETCH:
        races_atomic("atomic_fetch", GSHMEM_AMO_FETCH, there, bytes, pe, true);
        break;
    case GSHMEM_FOLLOWED_SEEN:
        races_see(there, bytes, pe);
        break;
    case GSHMEM_FOLLOWED_FENCE:
        races_fence();
        break;
    case GSHMEM_FOLLOWED_QUIET:
        races_quiet();
        break;
    case GSHMEM_FOLLOWED_FLUSH:
        races_flush();
        break;
    case GSHMEM_FOLLOWED_ARRIVE:
        arrive(pe);
        break;
    case GSHMEM_FOLLOWED_LEAVE:
        leave(pe, RACES_ALL, 0);
        break;
    case GSHMEM_FOLLOWED_READ:
        races_collective("collective", NULL, 0, there, bytes);
        break;
    case GSHMEM_FOLLOWED_WRITE:
        races_collective("collective", there, bytes, NULL, 0);
        break;
    }
}
