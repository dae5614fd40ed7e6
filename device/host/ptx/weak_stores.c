/* Weak memory: stores that are held back. A store is seen by its thread alone, then by the block,
 * then by the GPU, then by all (it is in memory). On each of these steps it may overtake others,
 * except those that overlap it, and except across a release. */
#define _GNU_SOURCE
#include <string.h>

#include "device/host/ptx/weak.h"

struct weak_gpu weak_gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- Memory --- */

static bool aligned(const char *at, u32 bytes)
{
    return (uintptr_t)at % bytes == 0 && (bytes & (bytes - 1)) == 0;
}

static void memory_read(char *to, const char *at, u32 bytes)
{
    u64 value;
    u128 wide;

    if (!aligned(at, bytes)) {
        memcpy(to, at, bytes);
        return;
    }
    switch (bytes) {
    case 1:
        value = ptx_ld_order_8(at, __ATOMIC_RELAXED);
        break;
    case 2:
        value = ptx_ld_order_16(at, __ATOMIC_RELAXED);
        break;
    case 4:
        value = ptx_ld_order_32(at, __ATOMIC_RELAXED);
        break;
    case 8:
        value = ptx_ld_order_64(at, __ATOMIC_RELAXED);
        break;
    default:
        wide = ptx_ld_order_128(at, __ATOMIC_RELAXED);
        memcpy(to, &wide, bytes);
        return;
    }
    memcpy(to, &value, bytes);
}

static void memory_write(const struct ptx_weak_store *s)
{
    if (!aligned(s->at, s->bytes)) {
        memcpy(s->at, s->value, s->bytes);
        return;
    }
    switch (s->bytes) {
    case 1:
        ptx_st_order_8(s->at, (u8)s->value[0], __ATOMIC_RELAXED);
        break;
    case 2:
        ptx_st_order_16(s->at, (u16)s->value[0], __ATOMIC_RELAXED);
        break;
    case 4:
        ptx_st_order_32(s->at, (u32)s->value[0], __ATOMIC_RELAXED);
        break;
    case 8:
        ptx_st_order_64(s->at, s->value[0], __ATOMIC_RELAXED);
        break;
    default:
        ptx_st_order_128(s->at, (u128)s->value[1] << 64 | s->value[0], __ATOMIC_RELAXED);
    }
}

/* --- Lists of stores, the oldest first --- */

static bool overlaps(const struct ptx_weak_store *s, const char *at, u32 bytes)
{
    return s->at < at + bytes && at < s->at + s->bytes;
}

/* Enters what the stores have of the bytes. */
static void lay_over(const struct ptx_weak_store *store, u32 n, char *to, const char *at, u32 bytes)
{
    for (u32 i = 0; i < n; i++) {
        const struct ptx_weak_store *s = &store[i];
        if (!overlaps(s, at, bytes))
            continue;
        const char *from = s->at > at ? s->at : at;
        const char *end = s->at + s->bytes < at + bytes ? s->at + s->bytes : at + bytes;
        memcpy(to + (from - at), (const char *)s->value + (from - s->at), (size_t)(end - from));
    }
}

static void take_out(struct ptx_weak_store *store, u32 n, u32 i)
{
    memmove(&store[i], &store[i + 1], (n - i - 1) * sizeof *store);
}

/* Whether a store may go before those in front of it. */
static bool may_overtake(const struct ptx_weak_store *store, u32 i)
{
    for (u32 k = 0; k < i; k++) {
        if (store[k].bytes == 0 || overlaps(&store[k], store[i].at, store[i].bytes))
            return false;
    }
    return true;
}

static bool has_come_due(u32 now, u32 due)
{
    return (s32)(now - due) >= 0;
}

/* How long a store is held back, in accesses: half of them not at all, some long enough for another
 * process to run meanwhile. */
static u32 hold_for(struct ptx_weak *w)
{
    const u32 lot = (u32)weak_random(w);

    if (lot & 1)
        return 0;
    return 1 + ((lot >> 16) & ((1u << (lot >> 1) % (lot & 0xf00 ? 8 : 12)) - 1));
}

/* --- What the GPU sees --- */

static void gpu_count(const char *at)
{
    const u64 now = atomic_load_explicit(&weak_gpu.clock, memory_order_relaxed) + 1;

    /* Release: who reads the clock then sees what was written, and that this place was. With the
     * acquire in weak_loads.c. */
    atomic_store_explicit(&weak_gpu.published[weak_hash(at)], now, memory_order_release);
    atomic_store_explicit(&weak_gpu.clock, now, memory_order_release);
}

/* To memory; under the lock. */
static void gpu_pop(u32 i)
{
    const u32 n = atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed);

    memory_write(&weak_gpu.store[i]);
    take_out(weak_gpu.store, n, i);
    /* Release: who sees that there are fewer finds it in memory. With the acquire in weak_look. */
    atomic_store_explicit(&weak_gpu.stores, n - 1, memory_order_release);
}

static void gpu_append(const struct ptx_weak_store *s, u32 held)
{
    pthread_mutex_lock(&weak_gpu.lock);
    u32 n = atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed);
    if (n == WEAK_GPU_STORES) {
        gpu_pop(0);
        n--;
    }
    weak_gpu.store[n] = *s;
    weak_gpu.store[n].due = weak_gpu.accesses + held;
    atomic_store_explicit(&weak_gpu.stores, n + 1, memory_order_release);
    gpu_count(s->at);
    pthread_mutex_unlock(&weak_gpu.lock);
}

static void gpu_seen_flush(void)
{
    pthread_mutex_lock(&weak_gpu.lock);
    while (atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed))
        gpu_pop(0);
    pthread_mutex_unlock(&weak_gpu.lock);
}

static void gpu_let_due_go(u32 accesses)
{
    if (pthread_mutex_trylock(&weak_gpu.lock) != 0)
        return;
    weak_gpu.accesses += accesses;
    for (u32 i = 0; i < atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed);) {
        if (has_come_due(weak_gpu.accesses, weak_gpu.store[i].due) &&
            may_overtake(weak_gpu.store, i))
            gpu_pop(i);
        else
            i++;
    }
    pthread_mutex_unlock(&weak_gpu.lock);
}

/* --- What the block sees --- */

static void block_count(struct gshmem_host_ptx_weak_block *b, const char *at)
{
    b->published[weak_hash(at)] = ++b->clock;
}

static void block_pop(struct ptx_weak *w, u32 i)
{
    struct gshmem_host_ptx_weak_block *b = w->block;

    gpu_append(&b->store[i], hold_for(w));
    take_out(b->store, b->stores--, i);
}

static void block_append(struct ptx_weak *w, const struct ptx_weak_store *s)
{
    struct gshmem_host_ptx_weak_block *b = w->block;

    block_count(b, s->at);
    if (weak_is_shared(b, s->at)) {
        memory_write(s);
        return;
    }
    if (b->stores == WEAK_BLOCK_STORES)
        block_pop(w, 0);
    const u32 due = b->accesses + hold_for(w);
    if (b->stores == 0 || !has_come_due(due, b->next_due))
        b->next_due = due;
    b->store[b->stores] = *s;
    b->store[b->stores++].due = due;
}

static void block_let_due_go(struct ptx_weak *w)
{
    struct gshmem_host_ptx_weak_block *b = w->block;
    u32 next = b->accesses + 4096;

    for (u32 i = 0; i < b->stores;) {
        if (has_come_due(b->accesses, b->store[i].due) && may_overtake(b->store, i)) {
            block_pop(w, i);
            continue;
        }
        if (!has_come_due(b->store[i].due, next))
            next = b->store[i].due;
        i++;
    }
    b->next_due = next;
}

static void block_flush(struct ptx_weak *w, enum ptx_scope scope)
{
    if (scope == PTX_CTA)
        return;
    while (w->block->stores)
        block_pop(w, 0);
    if (scope == PTX_SYS)
        gpu_seen_flush();
}

/* --- What the thread has stored --- */

/* The next step of one that may overtake those in front of it. */
static void thread_pop(struct ptx_weak *w, u32 i)
{
    const struct ptx_weak_store s = w->store[i];

    take_out(w->store, w->stores--, i);
    if (s.bytes == 0)
        block_flush(w, (enum ptx_scope)s.value[0]);
    else
        block_append(w, &s);
}

static void thread_let_due_go(struct ptx_weak *w)
{
    for (u32 i = 0; i < w->stores;) {
        const bool release = w->store[i].bytes == 0;
        if (has_come_due(w->block->accesses, w->store[i].due) &&
            (release ? i == 0 : may_overtake(w->store, i))) {
            thread_pop(w, i);
            i = release ? 0 : i;
        } else if (release) {
            break;
        } else {
            i++;
        }
    }
}

static void thread_append(struct ptx_weak *w, const struct ptx_weak_store *s)
{
    if (w->stores == PTX_WEAK_STORES)
        thread_pop(w, 0);
    w->store[w->stores] = *s;
    w->store[w->stores++].due = w->block->accesses + hold_for(w);
}

/* --- What others call --- */

void weak_count_access(struct ptx_weak *w)
{
    struct gshmem_host_ptx_weak_block *b = w->block;

    b->accesses++;
    if (w->stores)
        thread_let_due_go(w);
    if (b->stores && has_come_due(b->accesses, b->next_due))
        block_let_due_go(w);
    if (b->accesses % 4 == 0 && atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed))
        gpu_let_due_go(4);
}

void weak_look(const struct ptx_weak *w, char *to, const char *at, u32 bytes)
{
    const struct gshmem_host_ptx_weak_block *b = w->block;

    /* Acquire: with the release in gpu_pop. */
    if (atomic_load_explicit(&weak_gpu.stores, memory_order_acquire)) {
        pthread_mutex_lock(&weak_gpu.lock);
        memory_read(to, at, bytes);
        lay_over(weak_gpu.store, atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed), to,
                 at, bytes);
        pthread_mutex_unlock(&weak_gpu.lock);
    } else {
        memory_read(to, at, bytes);
    }
    lay_over(b->store, b->stores, to, at, bytes);
    lay_over(w->store, w->stores, to, at, bytes);
}

void weak_push(struct ptx_weak *w, enum ptx_scope scope)
{
    while (w->stores)
        thread_pop(w, 0);
    block_flush(w, scope);
    atomic_thread_fence(memory_order_seq_cst);
}

void weak_note_written(struct gshmem_host_ptx_weak_block *b, const char *at, u32 bytes)
{
    (void)bytes; /* no more than a line */
    block_count(b, at);
    pthread_mutex_lock(&weak_gpu.lock);
    gpu_count(at);
    pthread_mutex_unlock(&weak_gpu.lock);
}

void gshmem_host_ptx_weak_store(struct ptx_weak *w, char *at, const void *value, u32 bytes, u32 how)
{
    struct ptx_weak_store s = {.at = at, .bytes = bytes};

    if (how & PTX_GENERIC && weak_is_local(w, at)) {
        memcpy(at, value, bytes);
        return;
    }
    if (how & PTX_MMIO)
        gshmem_host_ptx_weak_update(w, at, bytes);
    else
        weak_count_access(w);
    memcpy(s.value, value, bytes);
    weak_forget(w, at, bytes);
    if (how & PTX_MMIO) {
        memory_write(&s);
        gshmem_host_ptx_weak_updated(w, at, bytes);
        return;
    }
    thread_append(w, &s);
}

/* Takes out of the way, in their order, the stores that overlap, and what a release is for. */
void gshmem_host_ptx_weak_update(struct ptx_weak *w, char *at, u32 bytes)
{
    struct gshmem_host_ptx_weak_block *b = w->block;
    u32 last = 0;

    weak_count_access(w);
    for (u32 i = 0; i < w->stores; i++)
        last = w->store[i].bytes == 0 || overlaps(&w->store[i], at, bytes) ? i + 1 : last;
    for (; last; last--)
        thread_pop(w, 0);
    for (u32 i = 0; i < b->stores;) {
        if (overlaps(&b->store[i], at, bytes))
            block_pop(w, i);
        else
            i++;
    }
    if (!atomic_load_explicit(&weak_gpu.stores, memory_order_acquire))
        return;
    pthread_mutex_lock(&weak_gpu.lock);
    for (u32 i = 0; i < atomic_load_explicit(&weak_gpu.stores, memory_order_relaxed);) {
        if (overlaps(&weak_gpu.store[i], at, bytes))
            gpu_pop(i);
        else
            i++;
    }
    pthread_mutex_unlock(&weak_gpu.lock);
}

void gshmem_host_ptx_weak_updated(struct ptx_weak *w, char *at, u32 bytes)
{
    weak_forget(w, at, bytes);
    weak_note_written(w->block, at, bytes);
}

/* What the block and the GPU see, the thread may have seen, too: it goes on with the thread's
 * own. */
void gshmem_host_ptx_weak_release(struct ptx_weak *w, enum ptx_scope scope)
{
    const struct ptx_weak_store release = {.value = {scope}};

    if (w->stores)
        thread_append(w, &release);
    else
        block_flush(w, scope);
    atomic_thread_fence(memory_order_seq_cst);
}
