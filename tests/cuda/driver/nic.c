/* The simulated driver: what a NIC writes to GPU memory.
 *
 * On a GPU that does not order such writes a kernel that runs may see what came later and not what came before. Here
 * that is so whenever it may be: a word is there at once, and all else when somebody flushes, when a NIC reads, or when
 * the CPU submits work or waits for some. */
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct write {
    struct write *next;
    cuda_address at;
    size_t bytes;
    char data[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list: */
static struct write *first, **last = &first;

static int ordering(void)
{
    return (int)sim_setting("SIM_ORDERING", CUDA_ORDERED_ALL);
}

bool sim_nic_attribute(int *value, enum cuda_attribute which)
{
    if (which == CUDA_ATTRIBUTE_ORDERING)
        *value = ordering();
    else if (which == CUDA_ATTRIBUTE_FLUSHES)
        *value = (int)sim_setting("SIM_FLUSHES", CUDA_FLUSHES_BY_HOST);
    else
        return false;
    return ordering() >= 0;
}

void sim_nic_flush(void)
{
    pthread_mutex_lock(&lock);
    while (first) {
        struct write *w = first;
        first = w->next;
        if (sim_copy(w->at, (cuda_address)(uintptr_t)w->data, w->bytes))
            sim_blame("a NIC writes to memory that is gone");
        free(w);
    }
    last = &first;
    pthread_mutex_unlock(&lock);
}

void sim_nic_write(cuda_address at, const void *data, size_t bytes)
{
    const bool ordered = ordering() >= CUDA_ORDERED_ALL;
    struct write *w;

    if ((bytes <= 8 || ordered) && sim_copy(at, (cuda_address)(uintptr_t)data, bytes))
        sim_blame("a NIC writes to memory that is not there");
    if (ordered)
        return;
    /* a word, too: it stays if something is still to come that was written there before */
    if (!(w = malloc(sizeof *w + bytes)))
        abort();
    *w = (struct write){NULL, at, bytes};
    memcpy(w->data, data, bytes);
    pthread_mutex_lock(&lock);
    *last = w;
    last = &w->next;
    pthread_mutex_unlock(&lock);
}

bool sim_look(void *to, cuda_address at, size_t bytes)
{
    return sim_copy((cuda_address)(uintptr_t)to, at, bytes) == CUDA_OK;
}

SIM_API cuda_result cuFlushGPUDirectRDMAWrites(int of, int to)
{
    SIM_ENTER();
    if (sim_current() < 0)
        return CUDA_INVALID_CONTEXT;
    if (of != CUDA_FLUSH_OF_CONTEXT || (to != CUDA_ORDERED_OWNER && to != CUDA_ORDERED_ALL))
        return CUDA_INVALID_VALUE;
    if (!(sim_setting("SIM_FLUSHES", CUDA_FLUSHES_BY_HOST) & CUDA_FLUSHES_BY_HOST))
        return CUDA_NOT_SUPPORTED;
    sim_nic_flush();
    return CUDA_OK;
}
