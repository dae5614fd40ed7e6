/* Shared memory: a piece of its own for each declaration, so that sanitizers see its ends. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "device/host/blocks/pool.h"
#include "device/host/blocks/threads.h"
#include "device/host/fibers/sanitizer.h"
#include "runtime/base/log.h"

unsigned gshmem_host_shared_number(void)
{
    static atomic_uint
        next; /* numbers are the process's: static initializers of programs ask for them */

    return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
}

/* By the worker and not by the thread that comes first, which would be no equal of the others. */
static void *shared_allocate(struct block *b, size_t bytes, size_t align)
{
    size_t rounded = (bytes + align - 1) / align * align;
    void *p = NULL;
    void *own = stand_in_for(worker_here->main.tsan);
    bool ok = b->shared_bytes + rounded <= SHARED_MAX && posix_memalign(&p, align, rounded) == 0;

    order_release(&b->allocated);
    stand_in_for(own);
    if (ok) {
        b->shared_bytes += rounded;
        return p;
    }
    log_error("kernel %s: %zu B of shared memory beside %zu; a block can have %d", b->grid->name,
              bytes, b->shared_bytes, SHARED_MAX);
    grid_fail(b->grid);
    thread_drop(thread_self());
}

static bool shared_make_room(struct block *b, unsigned number)
{
    unsigned room = number + 8;
    void **more = realloc(b->shared, room * sizeof *more);

    if (!more)
        return false;
    memset(more + b->shared_numbers, 0, (room - b->shared_numbers) * sizeof *more);
    b->shared = more;
    b->shared_numbers = room;
    return true;
}

void *gshmem_host_shared(unsigned number, size_t bytes, size_t align)
{
    struct thread *self = thread_self();

    if (!self)
        return NULL;
    struct block *b = self->block;
    if (number >= b->shared_numbers && !shared_make_room(b, number)) {
        log_error("kernel %s: no memory for shared memory", b->grid->name);
        grid_fail(b->grid);
        thread_drop(self);
    }
    if (!b->shared[number])
        b->shared[number] =
            shared_allocate(b, bytes, align < sizeof(void *) ? sizeof(void *) : align);
    order_acquire(&b->allocated);
    return b->shared[number];
}

void *gshmem_host_shared_dynamic(void)
{
    struct thread *self = thread_self();

    if (!self)
        return NULL;
    struct block *b = self->block;
    return b->dynamic_shared;
}
