/* Weak memory: loads that are satisfied early. A thread keeps lines of memory as it has seen them;
 * a load may give what is in one, until an acquire ends it. Lines that threads of the block have
 * loaded before are looked at without being asked for, since a program loads the same ones again.
 *
 * An acquire ends lines that are older than what it may order: for the whole system all of them;
 * within the GPU or the block those that one of its threads has written since, or that are older
 * than an acquire from outside by one of its threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/host/blocks/block.h"
#include "device/host/ptx/weak.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"

enum {
    EARLY = 6, /* lines that are looked at together */
    PAGE_BITS = 12,
};

/* --- Lines --- */

static struct ptx_weak_line *line_at(struct ptx_weak *w, const char *line)
{
    return &w->line[weak_hash(line) % PTX_WEAK_LINES];
}

static void line_forget(struct ptx_weak *w, const char *line)
{
    struct ptx_weak_line *found = line_at(w, line);

    if (found->at == line && !found->read_only)
        found->at = NULL;
}

void weak_forget(struct ptx_weak *w, const char *at, u32 bytes)
{
    line_forget(w, weak_line_of(at));
    line_forget(w, weak_line_of(at + bytes - 1));
}

/* Looks at a line, and keeps it. */
static struct ptx_weak_line *line_keep(struct ptx_weak *w, char *at, bool read_only)
{
    struct ptx_weak_line *line = line_at(w, at);

    /* Acquire: with the release in gpu_count. Before it looks, so that nothing between is missed */
    line->gpu_clock = atomic_load_explicit(&weak_gpu.clock, memory_order_acquire);
    line->block_clock = w->block->clock;
    line->at = at;
    line->read_only = read_only;
    weak_look(w, (char *)line->value, at, PTX_LINE);
    return line;
}

/* --- Lines that are looked at early --- */

/* The system reads the address before it finds that what it is asked for does not exist. */
static bool is_readable(const char *at)
{
    return syscall(SYS_rt_sigprocmask, ~0, at, NULL, 8) == 0 || errno != EFAULT;
}

static void recent_add(struct ptx_weak *w, char *line)
{
    struct gshmem_host_ptx_weak_block *b = w->block;
    u16 *place = &b->place[weak_hash(line) % WEAK_RECENT];

    if (b->recents && b->recent[*place] == line)
        return;
    if (b->recents < WEAK_RECENT)
        *place = (u16)b->recents++;
    else
        *place = (u16)(weak_random(w) % WEAK_RECENT);
    b->recent[*place] = line;
}

static void look_early(struct ptx_weak *w)
{
    struct gshmem_host_ptx_weak_block *b = w->block;
    uintptr_t page = 0;

    for (u32 i = 0; i < EARLY && b->recents; i++) {
        u32 place = (u32)(weak_random(w) % b->recents);
        char *at = b->recent[place];
        if (line_at(w, at)->at == at)
            continue;
        if ((uintptr_t)at >> PAGE_BITS != page && !is_readable(at)) {
            b->recent[place] = b->recent[--b->recents];
            continue;
        }
        page = (uintptr_t)at >> PAGE_BITS;
        line_keep(w, at, false);
    }
}

/* --- Loads --- */

static void load_plain(struct ptx_weak *w, char *to, const char *at, u32 bytes, bool read_only)
{
    char *const first = weak_line_of(at);
    struct ptx_weak_line *line = line_at(w, first);
    const u64 lot = weak_random(w);

    recent_add(w, first);
    if (line->at == first && line->read_only == read_only && lot >> 8 & 7) {
        memcpy(to, (char *)line->value + (at - first), bytes);
        if (lot % 16 == 0)
            line->at = NULL;
        return;
    }
    if (line->at != first && (read_only || lot % 4 == 0)) {
        line = line_keep(w, first, read_only);
        memcpy(to, (char *)line->value + (at - first), bytes);
        return;
    }
    weak_look(w, to, at, bytes);
}

/* No older value than the thread has seen by a strong access before: such an access forgets the
 * line. */
static void load_strong(struct ptx_weak *w, char *to, const char *at, u32 bytes)
{
    char *const first = weak_line_of(at);
    const struct ptx_weak_line *line = line_at(w, first);

    recent_add(w, first);
    if (line->at == first && !line->read_only && weak_random(w) % 4 == 0)
        memcpy(to, (const char *)line->value + (at - first), bytes);
    else
        weak_look(w, to, at, bytes);
    line_forget(w, first);
}

void gshmem_host_ptx_weak_load(struct ptx_weak *w, void *to, const char *at, u32 bytes, u32 how)
{
    if (how & PTX_GENERIC && weak_is_local(w, at)) {
        memcpy(to, at, bytes);
        return;
    }
    weak_count_access(w);
    if (how & PTX_MMIO || weak_line_of(at) != weak_line_of(at + bytes - 1)) {
        weak_look(w, to, at, bytes);
        weak_forget(w, at, bytes);
        return;
    }
    if (!(how & PTX_ACQUIRES) && weak_random(w) % (how & PTX_STRONG ? 4 : 32) == 0)
        look_early(w);
    if (how & PTX_STRONG)
        load_strong(w, to, at, bytes);
    else
        load_plain(w, to, at, bytes, how & PTX_READ_ONLY);
}

/* --- Acquires --- */

static bool line_is_old(const struct ptx_weak *w, const struct ptx_weak_line *line,
                        enum ptx_scope scope)
{
    const struct gshmem_host_ptx_weak_block *b = w->block;
    const u32 hash = weak_hash(line->at);

    if (scope == PTX_SYS || b->published[hash] > line->block_clock ||
        b->acquired > line->block_clock)
        return true;
    /* Acquire: with the release in gpu_count, and in acquired_from_outside. */
    return scope == PTX_GPU &&
           (atomic_load_explicit(&weak_gpu.published[hash], memory_order_acquire) >
                line->gpu_clock ||
            atomic_load_explicit(&weak_gpu.acquired, memory_order_acquire) > line->gpu_clock);
}

/* Others that acquire within the block, or the GPU, have to see what this thread may have seen. */
static void acquired_from_outside(struct gshmem_host_ptx_weak_block *b, enum ptx_scope scope)
{
    b->acquired = ++b->clock;
    if (scope != PTX_SYS)
        return;
    pthread_mutex_lock(&weak_gpu.lock);
    const u64 now = atomic_load_explicit(&weak_gpu.clock, memory_order_relaxed) + 1;
    /* in this order: who reads the clock then knows of the acquire */
    atomic_store_explicit(&weak_gpu.acquired, now, memory_order_release);
    atomic_store_explicit(&weak_gpu.clock, now, memory_order_release);
    pthread_mutex_unlock(&weak_gpu.lock);
}

void gshmem_host_ptx_weak_acquire(struct ptx_weak *w, enum ptx_scope scope)
{
    atomic_thread_fence(memory_order_seq_cst);
    /* Acquire: with the release in gpu_count. */
    const u64 now = atomic_load_explicit(&weak_gpu.clock, memory_order_acquire);
    const u32 clock = w->block->clock + (scope != PTX_CTA); /* of this acquire, see below */
    for (u32 i = 0; i < PTX_WEAK_LINES; i++) {
        struct ptx_weak_line *line = &w->line[i];
        if (!line->at || line->read_only)
            continue;
        if (line_is_old(w, line, scope))
            line->at = NULL;
        line->block_clock = clock; /* it is as good as one of now, for this scope */
        if (scope == PTX_GPU)
            line->gpu_clock = now;
    }
    if (scope != PTX_CTA)
        acquired_from_outside(w->block, scope);
}

void gshmem_host_ptx_weak_fence_sc(struct ptx_weak *w, enum ptx_scope scope)
{
    weak_push(w, scope);
    gshmem_host_ptx_weak_acquire(w, scope);
}

void gshmem_host_ptx_weak_settle(struct ptx_weak *w)
{
    weak_push(w, PTX_CTA);
}

void gshmem_host_ptx_weak_flush(struct ptx_weak *w)
{
    gshmem_host_ptx_weak_fence_sc(w, PTX_SYS);
}

void gshmem_host_ptx_weak_wrote(struct ptx_weak *w)
{
    gshmem_host_ptx_weak_acquire(w, PTX_SYS);
}

void gshmem_host_ptx_weak_sleep(struct ptx_weak *w)
{
    for (int i = 0; i < 16; i++)
        weak_count_access(w);
}

/* --- Threads and blocks --- */

static u64 weak_seed;

static void weak_start(void)
{
    const long long chosen = settings_number(SETTING_PTX_SEED);

    weak_seed = chosen >= 0 ? (u64)chosen : (u64)time(NULL) % 1000000;
    log_info("kernels run with weak memory, GSHMEM_PTX_SEED=%llu", (unsigned long long)weak_seed);
}

static void weak_block_end(void *state)
{
    struct gshmem_host_ptx_weak_block **at = ptx_weak_block_at(state);

    free(*at);
    *at = NULL;
}

static struct gshmem_host_ptx_weak_block *weak_block_of(const struct block *b)
{
    struct gshmem_host_ptx_weak_block **at = ptx_weak_block_at(b->dynamic_shared);

    if (*at)
        return *at;
    *at = calloc(1, sizeof **at);
    if (!*at)
        gshmem_host_trap("no memory for what the block holds back", __FILE__, __LINE__);
    block_state_end = weak_block_end;
    (*at)->shared = (char *)b->dynamic_shared + PTX_BLOCK_STATE;
    (*at)->shared_bytes = b->shared_bytes;
    return *at;
}

static u64 mixed(u64 a, u64 b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15ull;
    return a ^ a >> 29;
}

void gshmem_host_ptx_weak_begin(struct ptx_weak *w, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_uint launches;
    const struct thread *self = thread_self();
    const struct block *b = self->block;

    if (size != sizeof *w)
        gshmem_host_trap("kernel that was translated for another version of GSHMEM", __FILE__,
                         __LINE__);
    pthread_once(&once, weak_start);
    w->block = weak_block_of(b);
    w->stores = 0;
    for (u32 i = 0; i < PTX_WEAK_LINES; i++)
        w->line[i].at = NULL;
    w->stack = (u64)(uintptr_t)self->stack->low;
    w->stack_bytes = self->stack->size;
    w->random = mixed(mixed(weak_seed + 1, atomic_fetch_add(&launches, 1)),
                      mixed(b->index.x + ((u64)b->index.y << 20) + ((u64)b->index.z << 40),
                            (u64)(self - b->threads) + 1)) |
                1;
}

void gshmem_host_ptx_weak_end(struct ptx_weak *w)
{
    weak_push(w, PTX_SYS);
}
