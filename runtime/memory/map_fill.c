#include "runtime/memory/map_fill.h"

#include "runtime/job/job.h"
#include "runtime/memory/data.h"
#include "runtime/memory/map.h"
#include "runtime/node/node.h"

static bool same_program(const struct job *j, int index)
{
    const struct node_member *mine = &j->node->control->member[j->node->index];
    const struct node_member *theirs = &j->node->control->member[index];

    return mine->data_segments == theirs->data_segments && mine->data_digest == theirs->data_digest;
}

static gshmem_status_t add_segments(struct job *j)
{
    const struct node_layout *l = &j->node->layout;
    const struct segment system = {.bytes = l->system_bytes,
                                   .reserved = l->system_bytes,
                                   .own_bytes = l->system_bytes},
                         heap = {.bytes = l->heap_bytes, .own_bytes = l->heap_bytes},
                         nics = {.bytes = l->nic_bytes,
                                 .own_bytes = l->nic_bytes,
                                 .atomicity = ATOMICITY_NIC};
    gshmem_status_t status;

    if ((status = map_add(j->map, SEGMENT_SYSTEM, system, false)) ||
        (status = map_add(j->map, SEGMENT_HEAP, heap, false)) ||
        (l->nic_bytes && (status = map_add(j->map, SEGMENT_NIC, nics, false))))
        return status;
    /* The executable's entry has tables even without variables: contexts refer to them. */
    for (int i = 0; (i < 1 || i < j->data->n) && !status; i++) {
        const size_t bytes = j->data->segment[i].bytes;
        const struct segment variables = {.base = j->data->segment[i].base,
                                          .bytes = bytes,
                                          .own_bytes = bytes,
                                          .variables = true};
        status = map_add(j->map, SEGMENT_DATA + i, variables, false);
    }
    return status;
}

/* Enters where the node has mapped that PE's memory. */
static void enter_peer(struct job *j, int index)
{
    struct segment *s = j->map->segment;
    const struct node_layout *l = &j->node->layout;
    const uintptr_t arena = (uintptr_t)j->node->arena;
    const int pe = j->node->pe[index];

    j->map->local[pe] = true;
    s[SEGMENT_SYSTEM].mapped[pe] = arena + node_system_offset(l, index);
    s[SEGMENT_HEAP].mapped[pe] = arena + node_heap_offset(l, index);
    if (l->nic_bytes)
        s[SEGMENT_NIC].mapped[pe] = s[SEGMENT_HEAP].mapped[pe] + l->heap_bytes;
    map_learn_program(j->map, pe, j->data->n && same_program(j, index));
    for (int i = 0; i < j->data->n && map_program(j->map, pe) == PROGRAM_SAME; i++)
        s[SEGMENT_DATA + i].mapped[pe] =
            arena + node_data_offset(l, index) + j->data->segment[i].offset;
}

gshmem_status_t map_fill(struct job *j)
{
    struct segment *s = j->map->segment;
    gshmem_status_t status = map_open(j->map, j->pe, j->n_pes);

    if (status || (status = add_segments(j)))
        return status;
    for (int i = 0; i < j->node->n; i++)
        enter_peer(j, i);
    s[SEGMENT_SYSTEM].base = s[SEGMENT_SYSTEM].mapped[j->pe];
    map_move_heap(j, s[SEGMENT_HEAP].mapped[j->pe]);
    /* This PE's variables stay at their addresses. */
    for (int i = 0; i < j->data->n; i++)
        s[SEGMENT_DATA + i].mapped[j->pe] = j->data->segment[i].base;
    return GSHMEM_OK;
}

void map_move_heap(struct job *j, uintptr_t base)
{
    struct segment *s = j->map->segment;

    s[SEGMENT_HEAP].base = s[SEGMENT_HEAP].mapped[j->pe] = base;
    if (j->node->layout.nic_bytes)
        s[SEGMENT_NIC].base = s[SEGMENT_NIC].mapped[j->pe] = base + j->node->layout.heap_bytes;
}
