#include "runtime/network/blobs.h"

#include <stdlib.h>
#include <time.h>

#include "runtime/base/log.h"

void blobs_open(struct blobs *b, struct bootstrap *bootstrap)
{
    *b = (struct blobs){.bootstrap = bootstrap, .n_pes = bootstrap->n_pes};
    pthread_mutex_init(&b->fetching, NULL);
}

void blobs_close(struct blobs *b)
{
    for (int pe = 0; b->kept && pe < b->n_pes; pe++)
        free(atomic_load_explicit(&b->kept[pe], memory_order_relaxed));
    free(b->kept);
    pthread_mutex_destroy(&b->fetching);
}

bool blobs_keep(struct blobs *b)
{
    b->kept = calloc((size_t)b->n_pes, sizeof *b->kept);
    return b->kept != NULL;
}

static gshmem_status_t blobs_ask(struct blobs *b, int pe, struct pe_blob *blob)
{
    const size_t least = offsetof(struct pe_blob, transport);
    struct pe_blob got;
    size_t bytes = 0;
    gshmem_status_t status = b->bootstrap->ops->fetch(b->bootstrap, pe, &got, sizeof got, &bytes);

    if (status)
        return status;
    if (bytes == 0)
        return fail(GSHMEM_ERR_PEER_DEAD,
                    "start-up: PE %d has failed in gshmem_init; a line of its own says why", pe);
    if (bytes < least || got.transport_bytes > sizeof got.transport ||
        bytes != least + got.transport_bytes)
        return fail(
            GSHMEM_ERR_BOOTSTRAP,
            "start-up: PE %d published %zu bytes that this version cannot read; are all PEs "
            "of the job of one version of GSHMEM?",
            pe, bytes);
    *blob = got;
    return GSHMEM_OK;
}

gshmem_status_t blobs_fetch(struct blobs *b, int pe, struct pe_blob *blob)
{
    gshmem_status_t status = GSHMEM_OK;
    struct pe_blob *kept;

    if (!blobs_has(b, pe) || !b->kept) {
        pthread_mutex_lock(&b->fetching);
        if (!b->kept || !blobs_has(b, pe)) {
            status = blobs_ask(b, pe, blob);
            if (!status && b->kept && (kept = malloc(sizeof *kept))) {
                *kept = *blob;
                /* pairs with blobs_has */
                atomic_store_explicit(&b->kept[pe], kept, memory_order_release);
            }
            pthread_mutex_unlock(&b->fetching);
            return status;
        }
        pthread_mutex_unlock(&b->fetching);
    }
    *blob = *atomic_load_explicit(&b->kept[pe], memory_order_acquire);
    return GSHMEM_OK;
}

bool blobs_can_fetch(struct blobs *b)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0; i < 5000; i++) {
        if (pthread_mutex_trylock(&b->fetching) == 0) {
            pthread_mutex_unlock(&b->fetching);
            return true;
        }
        nanosleep(&moment, NULL);
    }
    return false;
}
