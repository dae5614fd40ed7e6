/* The symmetric heap at an address that the user chooses, the same on all PEs, for programs that
 * send each other pointers to objects in it.
 *
 * A PE maps its own heap a second time, at that address, and uses this mapping as its own. How
 * peers are reached does not change, so that it costs address space and nothing else. Objects may
 * be aligned to up to 1 GiB, and so the address is, too. */
#include "runtime/memory/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/memory/map_fill.h"
#include "runtime/node/kept.h"
#include "runtime/node/node.h"

/* Above programs and their heaps, below the addresses at which systems put mappings. */
#define SAME UINT64_C(0x200000000000)

/* 0 if the text is not an address. */
static uintptr_t place_address_of(const char *text)
{
    char *end;

    if (strcmp(text, "same") == 0)
        return SAME;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    return errno || end == text || *end || strchr(text, '-') ? 0 : value;
}

uint64_t place_wanted(void)
{
    return place_address_of(settings_string(SETTING_HEAP_BASE));
}

static gshmem_status_t place_parse(const char *text, uintptr_t *at)
{
    const uintptr_t value = place_address_of(text);

    if (!value)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "GSHMEM_HEAP_BASE=%s: give an address, as 0x%" PRIx64 ", or same", text, SAME);
    if (value % DEVICE_ARENA_ALIGNMENT)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "GSHMEM_HEAP_BASE=%s: the address has to be a multiple of 1 GiB (0x%x)", text,
                    (unsigned)DEVICE_ARENA_ALIGNMENT);
    *at = value;
    return GSHMEM_OK;
}

/* What is mapped in that range, in the system's words; "" if nothing is. */
static void find_taken(uintptr_t at, size_t bytes, char *text, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t begin, end;
    char line[512];

    *text = 0;
    while (maps && !*text && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2 && begin < at + bytes &&
            end > at)
            snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
    }
    if (maps)
        fclose(maps);
}

gshmem_status_t place_heap(struct job *j)
{
    const char *text = settings_string(SETTING_HEAP_BASE);
    const struct node_layout *l = &j->node->layout;
    const size_t bytes = l->heap_bytes + l->nic_bytes;
    gshmem_status_t status;
    char taken[300];
    uintptr_t at = 0;

    for (int i = 0; i < j->node->n; i++) {
        if (j->node->control->member[i].heap_base != place_wanted())
            return fail(GSHMEM_ERR_MISMATCH,
                        "start-up: GSHMEM_HEAP_BASE asks for another address here (%s) than on PE "
                        "%d, or for none: set it alike for all PEs",
                        *text ? text : "none", j->node->pe[i]);
    }
    if (!*text)
        return GSHMEM_OK;
    if ((status = place_parse(text, &at)))
        return status;
    if (j->device_heap)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "GSHMEM_HEAP_BASE=%s: the heap of this job is in memory of a GPU, which "
                    "chooses the addresses itself; GSHMEM_DEVICE=host puts it into host memory",
                    text);
    if (bytes > UINTPTR_MAX - at)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "GSHMEM_HEAP_BASE=%s: the heap would go past the end of the address space",
                    text);
    int error =
        device_arena_map_at(j->node->fd, node_heap_offset(l, j->node->index), bytes, (void *)at);
    if (error) {
        find_taken(at, bytes, taken, sizeof taken);
        return fail(GSHMEM_ERR_MEMORY,
                    "GSHMEM_HEAP_BASE=%s: %p..%p cannot be had for the heap (%zu MiB, "
                    "GSHMEM_HEAP_MAX): %s; give another address, the same for all PEs",
                    text, (void *)at, (void *)(at + bytes), bytes >> 20,
                    *taken ? taken : strerror(error));
    }
    j->placed = (void *)at;
    j->placed_bytes = bytes;
    map_move_heap(j, at);
    return GSHMEM_OK;
}

void place_end(struct job *j)
{
    if (j->placed)
        kept_unmap(j->placed, j->placed_bytes);
    j->placed = NULL;
}
