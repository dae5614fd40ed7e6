#define _GNU_SOURCE
#include "runtime/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/absolute_path.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"

struct trace {
    struct trace_head *head;
    struct trace_chunk *chunk; /* [head->chunks] */
    int pe;
    char *path;
    _Atomic uint64_t operations; /* of this PE's threads */
    pthread_key_t key; /* its destructor lets go of the chunk of a thread that ends */
    pthread_mutex_t naming;
};

struct trace *trace;
_Thread_local uint64_t trace_operation;

/* The chunk that this thread holds, of the trace that began as number `of`. */
static _Thread_local struct {
    struct trace_chunk *chunk;
    unsigned of;
} held;
static unsigned traces; /* begun so far in this process */

/* ---- Time ---- */

/* The counter that all CPUs of a machine share. Where there is none: nanoseconds. */
static inline uint64_t trace_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return clock_ns();
#endif
}

/* Both at nearly the same time: of some readings, the one that took least. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 4; i++) {
        const uint64_t before = trace_ticks(), now = clock_ns(), after = trace_ticks();
        if (after - before >= least)
            continue;
        least = after - before;
        *ticks = before + (after - before) / 2;
        *ns = now;
    }
}

/* ---- Writing ---- */

/* The next chunk of the ring that no thread holds; NULL: all are held. */
static struct trace_chunk *take_chunk(struct trace *t)
{
    struct trace_head *h = t->head;

    for (uint32_t tries = 0; tries < 2 * h->chunks; tries++) {
        const uint64_t number = atomic_fetch_add_explicit(&h->taken, 1, memory_order_relaxed);
        struct trace_chunk *c = &t->chunk[number % h->chunks];
        /* acquire: pairs with the release of the thread that held it */
        if (atomic_exchange_explicit(&c->held, 1, memory_order_acquire))
            continue;
        atomic_fetch_add_explicit(&h->overwritten,
                                  atomic_load_explicit(&c->used, memory_order_relaxed),
                                  memory_order_relaxed);
        atomic_store_explicit(&c->used, 0, memory_order_relaxed);
        c->number = number + 1;
        c->thread = (uint32_t)gettid();
        prctl(PR_GET_NAME, c->name);
        read_both(&c->ticks, &c->ns);
        return c;
    }
    return NULL;
}

static void let_go_of(void *chunk)
{
    struct trace_chunk *c = chunk;

    atomic_store_explicit(&c->held, 0, memory_order_release);
}

static struct trace_chunk *next_chunk(struct trace *t)
{
    if (held.chunk && held.of == traces)
        let_go_of(held.chunk);
    held.chunk = take_chunk(t);
    held.of = traces;
    pthread_setspecific(t->key, held.chunk);
    return held.chunk;
}

/* Inlined: the ways in differ in the time alone. */
__attribute__((always_inline)) static inline void write_event(uint64_t ticks, enum trace_what what,
                                                              enum trace_op op, int peer,
                                                              uint64_t id, uint64_t at,
                                                              uint64_t bytes)
{
    struct trace *t = trace;
    struct trace_chunk *c = held.of == traces ? held.chunk : NULL;
    uint32_t used = c ? atomic_load_explicit(&c->used, memory_order_relaxed) : TRACE_EVENTS;

    if (used == TRACE_EVENTS) {
        if (!(c = next_chunk(t))) {
            atomic_fetch_add_explicit(&t->head->lost, 1, memory_order_relaxed);
            return;
        }
        used = 0;
    }
    c->event[used] = (struct trace_event){
        .time = ticks ? ticks : trace_ticks(),
        .id = id,
        .at = at,
        .bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
        .kind = trace_kind(what, op, peer),
    };
    /* release: whoever reads the file of a PE that was killed finds whole events */
    atomic_store_explicit(&c->used, used + 1, memory_order_release);
}

void trace_write(enum trace_what what, enum trace_op op, int peer, uint64_t id, uint64_t at,
                 uint64_t bytes)
{
    write_event(0, what, op, peer, id, at, bytes);
}

void trace_write_at(uint64_t ticks, enum trace_what what, enum trace_op op, int peer, uint64_t id,
                    uint64_t at, uint64_t bytes)
{
    write_event(ticks, what, op, peer, id, at, bytes);
}

uint64_t trace_ticks_now(void)
{
    return trace_ticks();
}

uint64_t trace_own_id(uint32_t stream, uint64_t n)
{
    return trace_id(trace->pe, stream, n);
}

uint64_t trace_next_id(void)
{
    struct trace *t = trace;

    return trace_id(t->pe, 0,
                    atomic_fetch_add_explicit(&t->operations, 1, memory_order_relaxed) + 1);
}

/* ---- Names ---- */

static uint32_t find_name(const struct trace_head *h, const char *name, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (strncmp(h->name[i], name, TRACE_NAME_BYTES - 1) == 0)
            return i;
    }
    return to;
}

/* What a thread has named lately, by the address of the text: names are constants, as a rule. */
enum { NAMES_KEPT = 32 };
static _Thread_local struct {
    const char *text;
    uint32_t number;
    unsigned of;
} kept[NAMES_KEPT];

static uint32_t enter_name(struct trace *t, const char *name)
{
    struct trace_head *h = t->head;
    /* acquire: pairs with the release below: the texts are there */
    uint32_t n = atomic_load_explicit(&h->names, memory_order_acquire);
    uint32_t i = find_name(h, name, 0, n);

    if (i < n)
        return i;
    pthread_mutex_lock(&t->naming);
    const uint32_t now = atomic_load_explicit(&h->names, memory_order_relaxed);
    i = find_name(h, name, n, now);
    if (i == now && now < TRACE_NAMES - 1) {
        snprintf(h->name[now], TRACE_NAME_BYTES, "%s", name);
        atomic_store_explicit(&h->names, now + 1, memory_order_release);
    }
    pthread_mutex_unlock(&t->naming);
    return i;
}

uint32_t trace_name(const char *name)
{
    const unsigned at = (unsigned)((uintptr_t)name >> 2) % NAMES_KEPT;
    struct trace *t = trace;

    /* the same address may have another text by now, if the program composed it */
    if (kept[at].text == name && kept[at].of == traces &&
        strncmp(t->head->name[kept[at].number], name, TRACE_NAME_BYTES - 1) == 0)
        return kept[at].number;
    kept[at].text = name;
    kept[at].number = enter_name(t, name);
    kept[at].of = traces;
    return kept[at].number;
}

/* ---- The file ---- */

static bool is_folder(const char *path)
{
    struct stat is;

    return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

/* The folder and those above it, where they are missing. */
static bool trace_make_folder(const char *path)
{
    char part[600];
    const size_t length = strlen(path);

    if (length >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (part[i] && part[i] != '/')
            continue;
        part[i] = 0;
        if (mkdir(part, 0777)) {
            const int problem = errno;
            if (!is_folder(part)) {
                errno = problem == EEXIST ? ENOTDIR : problem;
                return false;
            }
        }
        part[i] = path[i];
    }
    return true;
}

static void read_first_line(const char *path, char *text, size_t size)
{
    FILE *from = fopen(path, "re");

    if (!from || !fgets(text, (int)size, from))
        text[0] = 0;
    text[strcspn(text, "\n")] = 0;
    if (from)
        fclose(from);
}

static void fill_head(struct trace_head *h, const struct trace_owner *o, size_t bytes)
{
    struct timespec now;

    h->version = TRACE_VERSION;
    h->pe = (uint32_t)o->pe;
    h->n_pes = (uint32_t)o->n_pes;
    h->node = (uint32_t)o->node;
    h->job = o->job;
    h->pid = (uint32_t)getpid();
    h->chunks = (uint32_t)((bytes - TRACE_HEAD_BYTES) / sizeof(struct trace_chunk));
    memcpy(h->segment, o->segment, sizeof h->segment);
    read_both(&h->begun_ticks, &h->begun_ns);
    timespec_get(&now, TIME_UTC);
    h->begun_realtime = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    read_first_line("/proc/sys/kernel/random/boot_id", h->boot, sizeof h->boot);
    if (gethostname(h->host, sizeof h->host - 1))
        h->host[0] = 0;
    snprintf(h->program, sizeof h->program, "%s", program_invocation_short_name);
    memcpy(h->magic, trace_magic, sizeof h->magic); /* last: the head is complete */
}

/* All of its blocks are there, so that a full disk is found now and not by a store. A file that is
 * larger than the process may write would end it by a signal. */
static int allocate(int fd, size_t bytes)
{
    struct rlimit most;
    int problem;

    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && bytes > most.rlim_cur)
        return EFBIG;
    while ((problem = posix_fallocate(fd, 0, (off_t)bytes)) == EINTR)
        continue;
    return problem;
}

static int open_file(const char *path, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int problem = fd < 0 ? errno : allocate(fd, bytes);

    if (!problem)
        return fd;
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    errno = problem;
    return -1;
}

void trace_start(const struct trace_owner *owner)
{
    const char *folder = settings_string(SETTING_TRACE);
    const size_t page = 8192, bytes = (size_t)settings_number(SETTING_TRACE_SIZE) / page * page;
    char path[700];
    void *at = MAP_FAILED;
    struct trace *t = NULL;
    int fd;

    if (!folder[0] || trace)
        return;
    snprintf(path, sizeof path, "%s/gshmem-%016llx-%d.trace", folder,
             (unsigned long long)owner->job, owner->pe);
    fd = trace_make_folder(folder) ? open_file(path, bytes) : -1;
    if (fd >= 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || !(t = calloc(1, sizeof *t)) || !(t->path = absolute_path(path))) {
        log_warn("GSHMEM_TRACE: nothing is traced: cannot make a file of %zu MiB "
                 "(GSHMEM_TRACE_SIZE) in %s: %s",
                 bytes >> 20, folder, strerror(errno));
        if (at != MAP_FAILED)
            munmap(at, bytes);
        if (fd >= 0) {
            close(fd);
            unlink(path);
        }
        free(t);
        return;
    }
    close(fd);
    /* At once: the first store to a page of a file takes longer than some hundred events. A kernel
     * that does not know this call makes each page when it is written. */
    (void)madvise(at, bytes, MADV_POPULATE_WRITE);
    t->pe = owner->pe;
    t->head = at;
    t->chunk = (struct trace_chunk *)((char *)at + TRACE_HEAD_BYTES);
    pthread_mutex_init(&t->naming, NULL);
    pthread_key_create(&t->key, let_go_of);
    fill_head(t->head, owner, bytes);
    traces++;
    trace = t;
}

void trace_end(void)
{
    if (trace)
        read_both(&trace->head->ended_ticks, &trace->head->ended_ns);
}

/* What the PE did not fill is not kept. */
void trace_stop(void)
{
    struct trace *t = trace;

    if (!t)
        return;
    trace = NULL;
    struct trace_head *h = t->head;
    const uint64_t taken = atomic_load_explicit(&h->taken, memory_order_relaxed);
    const size_t bytes = TRACE_HEAD_BYTES + h->chunks * sizeof(struct trace_chunk);
    read_both(&h->ended_ticks, &h->ended_ns);
    pthread_key_delete(t->key); /* no thread lets go of its chunk from here on */
    if (taken < h->chunks && truncate(t->path, (off_t)(TRACE_HEAD_BYTES +
                                                       taken * sizeof(struct trace_chunk))))
        log_warn("GSHMEM_TRACE: %s stays larger than it need be: %s", t->path, strerror(errno));
    munmap(h, bytes);
    pthread_mutex_destroy(&t->naming);
    free(t->path);
    free(t);
}

void trace_leave_parent(void)
{
    if (trace) /* the end of this thread must not let go of a chunk that the parent's goes on in */
        pthread_setspecific(trace->key, NULL);
    trace = NULL; /* the parent goes on to write to its file */
}
