/* The simulated driver: memory. A piece of GPU memory is a memfd; "GPU" addresses are reserved without any
 * access, and the simulation copies through mappings of its own that nobody else knows. The last page
 * of a piece's file counts the processes that have it open by CUDA IPC. */
#define _GNU_SOURCE
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRANULE = 2 << 20, PAGE = 4096, JUNK = 1 << 16, MULTICAST_AT = 128 };

struct reservation {
    char *at;
    size_t bytes;
};

struct piece {
    int fd;
    size_t bytes;
    cuda_gpu gpu;
    int type;       /* of the handles it may be exported as */
    int handles;    /* cuMemRelease has to be called so often */
    int mappings;
    cuda_address allocation; /* by cuMemAlloc or by IPC: where; 0: neither */
    bool imported;
};

struct mapping {
    char *at;
    size_t bytes;
    struct piece *piece;
    char *alias;
    unsigned access; /* a bit for each GPU */
    bool multicast;  /* for kernels alone */
};

static struct reservation reservations[SIM_OBJECTS];
static struct piece pieces[SIM_OBJECTS];
static struct mapping mappings[SIM_OBJECTS];
static size_t used[SIM_GPUS_MOST];

/* A GPU of another host, which NVLink reaches where both are in one clique of a domain. */
static const cuda_gpu remote = SIM_GPUS_MOST;

#define FIND(table, condition)                                                                     \
    ({                                                                                             \
        __typeof__(&(table)[0]) it = (table), end = (table) + SIM_OBJECTS;                         \
        while (it < end && !(condition))                                                           \
            it++;                                                                                  \
        it < end ? it : NULL;                                                                      \
    })

/* ---- Addresses ---- */

SIM_API cuda_result cuMemAddressReserve(cuda_address *at, size_t bytes, size_t alignment,
                                        cuda_address hint, unsigned long long flags)
{
    struct reservation *r;
    char *p;

    SIM_ENTER();
    if (bytes == 0 || bytes % GRANULE || alignment > GRANULE || hint || flags)
        return CUDA_INVALID_VALUE;
    p = mmap(NULL, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    size_t before = -(uintptr_t)p & (GRANULE - 1);
    if (before)
        munmap(p, before);
    munmap(p + before + bytes, GRANULE - before);
    sim_lock();
    if ((r = FIND(reservations, !it->at)))
        *r = (struct reservation){p + before, bytes};
    sim_unlock();
    if (!r)
        return CUDA_OUT_OF_MEMORY;
    *at = (cuda_address)(uintptr_t)r->at;
    sim_opened(SIM_RESERVATION);
    return CUDA_OK;
}

static struct mapping *mapping_in(const char *at, size_t bytes)
{
    return FIND(mappings, it->at && it->at < at + bytes && at < it->at + it->bytes);
}

SIM_API cuda_result cuMemAddressFree(cuda_address at, size_t bytes)
{
    char *p = (char *)(uintptr_t)at;
    cuda_result result = CUDA_INVALID_VALUE;

    SIM_ENTER();
    sim_lock();
    struct reservation *r = FIND(reservations, it->at == p && it->bytes == bytes);
    if (r && !mapping_in(p, bytes)) {
        munmap(p, bytes);
        r->at = NULL;
        sim_closed(SIM_RESERVATION);
        result = CUDA_OK;
    }
    sim_unlock();
    return result;
}

/* ---- Pieces ---- */

static bool right_kind(const struct cuda_allocation *what)
{
    int types = what->handle_types;

    return what->type == CUDA_ALLOCATION_PINNED && what->location.type == CUDA_LOCATION_GPU &&
           sim_gpu_exists(what->location.id) && !what->for_windows &&
           (types & ~(CUDA_HANDLE_DESCRIPTOR | CUDA_HANDLE_FABRIC)) == 0;
}

static bool offered(int types)
{
    return (!(types & CUDA_HANDLE_DESCRIPTOR) || sim_setting("SIM_POSIX", 1)) &&
           (!(types & CUDA_HANDLE_FABRIC) || sim_setting("SIM_FABRIC", 0));
}

SIM_API cuda_result cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_allocation *what,
                                                  int option)
{
    SIM_ENTER();
    if (!right_kind(what) || option < 0 || option > CUDA_GRANULARITY_RECOMMENDED)
        return CUDA_INVALID_VALUE;
    *bytes = GRANULE;
    return CUDA_OK;
}

static void spoil(int fd, size_t bytes)
{
    static char junk[JUNK];

    memset(junk, 0xa5, sizeof junk);
    for (size_t at = 0; at < bytes && at < 16 * JUNK; at += JUNK) {
        size_t part = bytes - at < JUNK ? bytes - at : JUNK;
        if (pwrite(fd, junk, part, (off_t)at) < 0)
            sim_blame("writing a memfd: %s", strerror(errno));
    }
}

static cuda_result new_piece(cuda_gpu gpu, size_t bytes, int type, struct piece **out)
{
    cuda_result result = CUDA_OUT_OF_MEMORY;
    struct piece *p;

    sim_lock();
    if (used[gpu] + bytes <= (size_t)sim_setting("SIM_MEMORY", 1 << 30) &&
        (p = FIND(pieces, !it->bytes))) {
        int fd = memfd_create("simulated GPU memory", MFD_CLOEXEC);
        if (fd >= 0 && ftruncate(fd, (off_t)bytes + PAGE) == 0) {
            spoil(fd, bytes);
            *p = (struct piece){.fd = fd, .bytes = bytes, .gpu = gpu, .type = type};
            used[gpu] += bytes;
            *out = p;
            result = CUDA_OK;
        }
    }
    sim_unlock();
    return result;
}

/* With the lock held: gone when neither a handle nor a mapping is left. */
static void let_go(struct piece *p)
{
    if (p->handles || p->mappings)
        return;
    if (!p->imported)
        used[p->gpu] -= p->bytes;
    close(p->fd);
    *p = (struct piece){.bytes = 0};
}

SIM_API cuda_result cuMemCreate(cuda_piece *piece, size_t bytes, const struct cuda_allocation *what,
                                unsigned long long flags)
{
    cuda_result result;
    struct piece *p;

    SIM_ENTER();
    if (!sim_setting("SIM_VMM", 1) || !offered(what->handle_types))
        return CUDA_NOT_SUPPORTED;
    if (!right_kind(what) || flags || bytes == 0 || bytes % GRANULE)
        return CUDA_INVALID_VALUE;
    if ((result = new_piece(what->location.id, bytes, what->handle_types, &p)))
        return result;
    p->handles = 1;
    *piece = (cuda_piece)(p - pieces) + 1;
    sim_opened(SIM_PIECE);
    return CUDA_OK;
}

static struct piece *piece_of(cuda_piece handle)
{
    struct piece *p = handle - 1 < SIM_OBJECTS ? &pieces[handle - 1] : NULL;

    return p && p->bytes && p->handles ? p : NULL;
}

SIM_API cuda_result cuMemRelease(cuda_piece handle)
{
    struct piece *p = piece_of(handle);

    SIM_ENTER();
    if (!p)
        return CUDA_INVALID_VALUE;
    sim_lock();
    p->handles--;
    let_go(p);
    sim_unlock();
    sim_closed(SIM_PIECE);
    return CUDA_OK;
}

static struct mapping *mapping_in(const char *at, size_t bytes);

/* A handle again of what is mapped there; not of what came by cuMemAlloc or CUDA IPC. */
SIM_API cuda_result cuMemRetainAllocationHandle(cuda_piece *handle, void *at)
{
    SIM_ENTER();
    sim_lock();
    struct mapping *m = mapping_in(at, 1);
    struct piece *p = m ? m->piece : NULL;
    if (p && !p->allocation)
        p->handles++;
    else
        p = NULL;
    sim_unlock();
    if (!p)
        return CUDA_INVALID_VALUE;
    *handle = (cuda_piece)(p - pieces) + 1;
    sim_opened(SIM_PIECE);
    return CUDA_OK;
}

SIM_API cuda_result cuMemGetAllocationPropertiesFromHandle(struct cuda_allocation *what, cuda_piece handle)
{
    const struct piece *p = piece_of(handle);

    SIM_ENTER();
    if (!p)
        return CUDA_INVALID_VALUE;
    *what = (struct cuda_allocation){.type = CUDA_ALLOCATION_PINNED,
                                     .handle_types = p->type,
                                     .location = {CUDA_LOCATION_GPU, p->gpu}};
    return CUDA_OK;
}

/* ---- Multicast objects: pieces whose last page says so ---- */

static struct sim_multicast *open_multicast(const struct piece *p)
{
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, (off_t)p->bytes);

    return page == MAP_FAILED ? NULL : (struct sim_multicast *)(page + MULTICAST_AT);
}

void sim_multicast_close(struct sim_multicast *m)
{
    munmap((char *)m - MULTICAST_AT, PAGE);
}

cuda_result sim_multicast_create(size_t bytes, int types, cuda_piece *object)
{
    cuda_gpu gpu = sim_current();
    cuda_result result;
    struct piece *p;

    if (gpu < 0)
        return CUDA_INVALID_CONTEXT;
    if (!offered(types))
        return CUDA_NOT_SUPPORTED;
    if (bytes == 0 || bytes % GRANULE)
        return CUDA_INVALID_VALUE;
    if ((result = new_piece(gpu, bytes, types, &p)))
        return result;
    sim_lock();
    used[gpu] -= bytes; /* it is no memory of the GPU's */
    p->imported = true;
    p->handles = 1;
    sim_unlock();
    *object = (cuda_piece)(p - pieces) + 1;
    sim_opened(SIM_PIECE);
    return CUDA_OK;
}

struct sim_multicast *sim_multicast_open(cuda_piece handle, size_t *bytes)
{
    struct piece *p = piece_of(handle);
    struct sim_multicast *m = p ? open_multicast(p) : NULL;

    if (m)
        *bytes = p->bytes;
    return m;
}

static bool is_multicast(const struct piece *p)
{
    struct sim_multicast *m = open_multicast(p);
    bool is = m && __atomic_load_n(&m->gpus, __ATOMIC_SEQ_CST);
    bool all = is && (uint32_t)__builtin_popcount(__atomic_load_n(&m->added, __ATOMIC_SEQ_CST)) == m->gpus;

    if (is && !all)
        sim_blame("a multicast object is used before all its GPUs were added: a driver would wait");
    if (m)
        sim_multicast_close(m);
    return is;
}

/* ---- Mappings ---- */

/* How many kernels of each GPU are running. */
static int running[SIM_GPUS_MOST];

static void protect(const struct mapping *m)
{
    bool open = false;

    for (int gpu = 0; gpu < SIM_GPUS_MOST; gpu++)
        open = open || (running[gpu] && m->access >> gpu & 1);
    if (mprotect(m->at, m->bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE))
        sim_blame("mprotect: %s", strerror(errno));
}

void sim_expose(cuda_gpu gpu, bool expose)
{
    sim_lock();
    running[gpu] += expose ? 1 : -1;
    if (running[gpu] == expose) {
        for (struct mapping *m = mappings; m < mappings + SIM_OBJECTS; m++) {
            if (m->at && m->access >> gpu & 1)
                protect(m);
        }
    }
    sim_unlock();
}

static cuda_result add_mapping(char *at, struct piece *p, unsigned access)
{
    char *alias = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    struct mapping *m = FIND(mappings, !it->at);

    if (alias == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    if (!m || mmap(at, p->bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, p->fd, 0) != at) {
        munmap(alias, p->bytes);
        return CUDA_OUT_OF_MEMORY;
    }
    *m = (struct mapping){at, p->bytes, p, alias, access, is_multicast(p)};
    protect(m);
    p->mappings++;
    return CUDA_OK;
}

static void remove_mapping(struct mapping *m)
{
    struct piece *p = m->piece;

    munmap(m->alias, m->bytes);
    mmap(m->at, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    m->at = NULL;
    p->mappings--;
    let_go(p);
}

SIM_API cuda_result cuMemMap(cuda_address at, size_t bytes, size_t offset, cuda_piece handle,
                             unsigned long long flags)
{
    char *p = (char *)(uintptr_t)at;
    struct piece *piece = piece_of(handle);
    cuda_result result = CUDA_INVALID_VALUE;

    SIM_ENTER();
    if (!piece || bytes != piece->bytes || offset || flags || at % GRANULE)
        return CUDA_INVALID_VALUE;
    sim_lock();
    if (FIND(reservations, it->at && it->at <= p && p + bytes <= it->at + it->bytes) &&
        !mapping_in(p, bytes))
        result = add_mapping(p, piece, 0);
    sim_unlock();
    if (!result)
        sim_opened(SIM_MAPPING);
    return result;
}

SIM_API cuda_result cuMemUnmap(cuda_address at, size_t bytes)
{
    char *p = (char *)(uintptr_t)at;

    SIM_ENTER();
    sim_lock();
    struct mapping *m = FIND(mappings, it->at == p && it->bytes == bytes);
    if (m && sim_is_bound(at, bytes))
        sim_blame("memory is unmapped that is still bound to a multicast object");
    if (m)
        remove_mapping(m);
    sim_unlock();
    if (!m)
        return CUDA_INVALID_VALUE;
    sim_closed(SIM_MAPPING);
    return CUDA_OK;
}

SIM_API cuda_result cuMemSetAccess(cuda_address at, size_t bytes, const struct cuda_access *access,
                                   size_t n)
{
    char *p = (char *)(uintptr_t)at;
    cuda_result result = CUDA_OK;

    SIM_ENTER();
    sim_lock();
    struct mapping *m = FIND(mappings, it->at == p && it->bytes == bytes);
    if (!m)
        result = CUDA_INVALID_VALUE;
    for (size_t i = 0; i < n && !result; i++) {
        cuda_gpu gpu = access[i].location.id;
        if (access[i].location.type != CUDA_LOCATION_GPU || access[i].flags != CUDA_READ_WRITE ||
            !sim_gpu_exists(gpu))
            result = CUDA_INVALID_VALUE;
        else if (!m->multicast && m->piece->gpu != remote && !sim_reaches(gpu, m->piece->gpu))
            result = CUDA_PEER_ACCESS_UNSUPPORTED;
        else
            m->access |= 1u << gpu;
    }
    if (m)
        protect(m);
    sim_unlock();
    return result;
}

/* ---- To other processes ---- */

/* What handles say: whose descriptor it is. A process of the same user can open it. */
struct ticket {
    char magic[16];
    int32_t pid, fd;
    uint64_t bytes;
    int32_t gpu; /* of the machine */
    int32_t type;
    int16_t host, clique;
    char domain;
};
_Static_assert(sizeof(struct ticket) <= sizeof(struct cuda_handle), "it is a handle");

static const char magic[16] = "simulated piece";

static struct ticket ticket_of(const struct piece *p, int type)
{
    struct ticket t = {.pid = getpid(), .fd = p->fd, .bytes = p->bytes, .gpu = sim_visible(p->gpu),
                       .type = type, .host = (int16_t)sim_host(), .clique = (int16_t)sim_clique(),
                       .domain = sim_domain()};

    memcpy(t.magic, magic, sizeof magic);
    return t;
}

static cuda_gpu gpu_remote(const struct ticket *t)
{
    if (t->domain && t->domain == sim_domain() && t->clique == sim_clique())
        return remote;
    sim_blame("memory of another domain or clique is asked for: a driver need not find that out");
    return -1;
}

static cuda_gpu gpu_here(int machine)
{
    for (cuda_gpu gpu = 0; gpu < sim_gpus(); gpu++) {
        if (sim_visible(gpu) == machine)
            return gpu;
    }
    return -1;
}

/* A piece that another process has made; the descriptor becomes its own. */
static struct piece *take_over(int fd, cuda_gpu gpu, int type)
{
    struct stat s;
    struct piece *p;

    if (gpu < 0 || fstat(fd, &s) != 0 || s.st_size <= PAGE)
        return NULL;
    sim_lock();
    if ((p = FIND(pieces, !it->bytes)))
        *p = (struct piece){.fd = fd, .bytes = (size_t)s.st_size - PAGE, .gpu = gpu, .type = type,
                            .imported = true};
    sim_unlock();
    return p;
}

static int open_ticket(const struct ticket *t, int type)
{
    char path[64];

    if (memcmp(t->magic, magic, sizeof magic) != 0 || t->type != type)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", t->pid, t->fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* A descriptor says nothing of its GPU: the file's last page does. */
static void sign(const struct piece *p)
{
    int32_t gpu = sim_visible(p->gpu);

    if (pwrite(p->fd, &gpu, sizeof gpu, (off_t)p->bytes + 64) != sizeof gpu)
        sim_blame("writing a memfd: %s", strerror(errno));
}

static int signature(int fd)
{
    struct stat s;
    int32_t gpu;

    if (fstat(fd, &s) != 0 || s.st_size <= PAGE ||
        pread(fd, &gpu, sizeof gpu, s.st_size - PAGE + 64) != sizeof gpu)
        return -1;
    return gpu;
}

SIM_API cuda_result cuMemExportToShareableHandle(void *out, cuda_piece handle, int type,
                                                 unsigned long long flags)
{
    struct piece *p = piece_of(handle);

    SIM_ENTER();
    if (!p || flags || !(p->type & type))
        return CUDA_INVALID_VALUE;
    if (type == CUDA_HANDLE_DESCRIPTOR) {
        sign(p);
        int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            return CUDA_OUT_OF_MEMORY;
        memcpy(out, &fd, sizeof fd);
        return CUDA_OK;
    }
    struct ticket t = ticket_of(p, type);
    memset(out, 0, sizeof(struct cuda_handle));
    memcpy(out, &t, sizeof t);
    return CUDA_OK;
}

SIM_API cuda_result cuMemImportFromShareableHandle(cuda_piece *handle, void *given, int type)
{
    struct piece *p;
    struct ticket t;
    cuda_gpu gpu;
    int fd;

    SIM_ENTER();
    if (!sim_setting("SIM_VMM", 1) || !offered(type))
        return CUDA_NOT_SUPPORTED;
    if (type == CUDA_HANDLE_DESCRIPTOR) {
        fd = fcntl((int)(intptr_t)given, F_DUPFD_CLOEXEC, 0);
        gpu = fd < 0 ? -1 : gpu_here(signature(fd));
    } else {
        memcpy(&t, given, sizeof t);
        fd = open_ticket(&t, type);
        gpu = t.host == sim_host() ? gpu_here(t.gpu) : gpu_remote(&t);
    }
    if (fd < 0)
        return CUDA_INVALID_VALUE;
    if (!(p = take_over(fd, gpu, type))) {
        close(fd);
        return CUDA_INVALID_VALUE;
    }
    p->handles = 1;
    *handle = (cuda_piece)(p - pieces) + 1;
    sim_opened(SIM_PIECE);
    return CUDA_OK;
}

/* ---- Memory with an address ---- */

static cuda_result place(struct piece *p, unsigned access, cuda_address *at)
{
    cuda_result result;
    char *where = mmap(NULL, p->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (where == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    sim_lock();
    if ((result = add_mapping(where, p, access)))
        munmap(where, p->bytes);
    sim_unlock();
    p->allocation = *at = (cuda_address)(uintptr_t)where;
    return result;
}

static struct piece *allocation_at(cuda_address at, bool imported)
{
    return at ? FIND(pieces, it->bytes && it->allocation == at && it->imported == imported) : NULL;
}

static void remove_allocation(struct piece *p)
{
    char *at = (char *)(uintptr_t)p->allocation;
    size_t bytes = p->bytes;

    sim_lock();
    remove_mapping(FIND(mappings, it->at == at));
    munmap(at, bytes);
    sim_unlock();
}

SIM_API cuda_result cuMemAlloc_v2(cuda_address *at, size_t bytes)
{
    cuda_gpu gpu = sim_current();
    cuda_result result;
    struct piece *p;

    SIM_ENTER();
    if (gpu < 0)
        return CUDA_INVALID_CONTEXT;
    if (sim_captures())
        return CUDA_CAPTURE_UNSUPPORTED;
    if (bytes == 0)
        return CUDA_INVALID_VALUE;
    if ((result = new_piece(gpu, (bytes + PAGE - 1) / PAGE * PAGE, 0, &p)) ||
        (result = place(p, 1u << gpu, at)))
        return result;
    sim_opened(SIM_ALLOCATION);
    return CUDA_OK;
}

/* How many processes have it open by IPC. */
static int32_t count_users(const struct piece *p, int change)
{
    int32_t *users = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, (off_t)p->bytes);
    int32_t now = users == MAP_FAILED ? 0 : __atomic_add_fetch(users, change, __ATOMIC_SEQ_CST);

    if (users != MAP_FAILED)
        munmap(users, PAGE);
    return now;
}

SIM_API cuda_result cuMemFree_v2(cuda_address at)
{
    struct piece *p = allocation_at(at, false);

    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (!p)
        return CUDA_INVALID_VALUE;
    if (count_users(p, 0) && !sim_setting("SIM_DEATHS", 0))
        sim_blame("memory is freed that other processes have open by CUDA IPC");
    remove_allocation(p);
    sim_closed(SIM_ALLOCATION);
    return CUDA_OK;
}

SIM_API cuda_result cuIpcGetMemHandle(struct cuda_handle *handle, cuda_address at)
{
    struct piece *p = allocation_at(at, false);

    SIM_ENTER();
    if (!p)
        return CUDA_INVALID_VALUE;
    struct ticket t = ticket_of(p, 0);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &t, sizeof t);
    return CUDA_OK;
}

SIM_API cuda_result cuIpcOpenMemHandle_v2(cuda_address *at, struct cuda_handle handle,
                                          unsigned flags)
{
    struct piece *p = NULL;
    struct ticket t;
    cuda_gpu gpu;
    int fd;

    SIM_ENTER();
    memcpy(&t, &handle, sizeof t);
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (flags != CUDA_IPC_LAZY_PEER_ACCESS || t.pid == getpid() || (fd = open_ticket(&t, 0)) < 0)
        return CUDA_INVALID_VALUE;
    gpu = gpu_here(t.gpu);
    if (gpu >= 0 && !sim_reaches(sim_current(), gpu)) {
        close(fd);
        return CUDA_PEER_ACCESS_UNSUPPORTED;
    }
    if (!(p = take_over(fd, gpu, 0))) {
        close(fd);
        return CUDA_INVALID_VALUE;
    }
    count_users(p, 1);
    sim_opened(SIM_IMPORT);
    return place(p, 1u << sim_current(), at);
}

SIM_API cuda_result cuIpcCloseMemHandle(cuda_address at)
{
    struct piece *p = allocation_at(at, true);

    SIM_ENTER();
    if (!p)
        return CUDA_INVALID_VALUE;
    count_users(p, -1);
    remove_allocation(p);
    sim_closed(SIM_IMPORT);
    return CUDA_OK;
}

bool sim_find(cuda_address at, struct sim_place *place)
{
    char *p = (char *)(uintptr_t)at;

    sim_lock();
    struct mapping *m = mapping_in(p, 1);
    if (m)
        *place = (struct sim_place){(cuda_address)(uintptr_t)m->at, m->bytes, m->piece->fd, m->piece->type,
                                    m->piece->gpu};
    sim_unlock();
    return m != NULL;
}

/* ---- Copies ---- */

/* Where the simulation itself reads and writes `at`, and how far that goes; NULL: nothing is there. */
static char *reach(cuda_address at, size_t *bytes)
{
    char *p = (char *)(uintptr_t)at;
    struct mapping *m = FIND(mappings, it->at && it->at <= p && p < it->at + it->bytes);

    if (m) {
        size_t left = (size_t)(m->at + m->bytes - p);
        *bytes = left < *bytes ? left : *bytes;
        return m->access && !m->multicast ? m->alias + (p - m->at) : NULL;
    }
    if (FIND(reservations, it->at && it->at < p + *bytes && p < it->at + it->bytes))
        return NULL; /* reserved, not mapped */
    return p;
}

/* An aligned word goes in one piece, as a GPU's copies do it. */
static void move(char *to, const char *from, size_t bytes)
{
    if (bytes == 8 && ((uintptr_t)to | (uintptr_t)from) % 8 == 0)
        __atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE),
                         __ATOMIC_RELEASE);
    else if (bytes == 4 && ((uintptr_t)to | (uintptr_t)from) % 4 == 0)
        __atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE),
                         __ATOMIC_RELEASE);
    else
        memcpy(to, from, bytes);
}

cuda_result sim_copy(cuda_address to, cuda_address from, size_t bytes)
{
    cuda_result result = CUDA_OK;

    sim_lock();
    while (bytes && !result) {
        size_t part = bytes;
        char *t = reach(to, &part), *f = reach(from, &part);
        if (t && f)
            move(t, f, part);
        else
            result = CUDA_ILLEGAL_ADDRESS;
        to += part;
        from += part;
        bytes -= part;
    }
    sim_unlock();
    return result;
}

cuda_result sim_fill(cuda_address at, unsigned char byte, size_t bytes)
{
    cuda_result result = CUDA_OK;

    sim_lock();
    while (bytes && !result) {
        size_t part = bytes;
        char *t = reach(at, &part);
        if (t)
            memset(t, byte, part);
        else
            result = CUDA_ILLEGAL_ADDRESS;
        at += part;
        bytes -= part;
    }
    sim_unlock();
    return result;
}
