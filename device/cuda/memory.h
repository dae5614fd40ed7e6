/* Memory: copies that are done on return, small memory, how memory is shared, heaps, imported
 * memory, multicast, and memory that the device did not make. Functions with a struct device are
 * slots of struct device_ops, where device.h says what they do. */
#ifndef GSHMEM_CUDA_MEMORY_H
#define GSHMEM_CUDA_MEMORY_H

#include "device/cuda/context.h"

/* memory.c */
gshmem_status_t cuda_copy(struct device *d, void *to, const void *from, size_t bytes);
gshmem_status_t cuda_fill(struct device *d, void *at, int byte, size_t bytes);
void *cuda_allocate(struct device *d, enum device_memory kind, size_t bytes);
void cuda_release(struct device *d, enum device_memory kind, void *at);

/* share.c: chooses how pieces are shared, as far as the GPU can and the setting allows. */
gshmem_status_t cuda_choose_share(struct cuda *c);
const char *cuda_share_name(enum cuda_share share);
/* How memory of the heap is made, and in which units. */
struct cuda_allocation cuda_allocation_of(const struct cuda *c);
gshmem_status_t cuda_granularity(const struct cuda *c, uint64_t *bytes);
/* A piece of memory, or a multicast object, to other processes of the node and back. The given
 * descriptor stays open. */
cuda_result cuda_export(struct cuda *c, cuda_piece piece, struct device_piece *out);
cuda_result cuda_import(struct cuda *c, const struct device_piece *given, cuda_piece *piece);
int cuda_handle_type(const struct cuda *c);
/* The same for PEs of other nodes, where this GPU is in a domain: memory of the heap alone. */
cuda_result cuda_export_remote(struct cuda *c, cuda_piece piece, struct device_piece *out);
cuda_result cuda_import_remote(struct cuda *c, const struct device_piece *given, cuda_piece *piece);

/* domain.c: fills c->domain, where this PE's GPU is in a domain and there are PEs on other nodes.
 */
void cuda_find_domain(struct cuda *c);

/* heap.c */
gshmem_status_t cuda_describe(struct device *d, uint64_t most, struct device_card *card);
gshmem_status_t cuda_heap_open(struct device *d, const struct device_card *card, uint64_t limit,
                               uint64_t window, struct device_heap_map *map);
gshmem_status_t cuda_heap_open_remote(struct device *d, const struct device_card *card,
                                      uint64_t limit, uint64_t window, struct device_heap_map *map);
void cuda_heap_close(struct device *d, struct device_heap_map *map);
/* With work.lock: the GPU that loads and stores in the heap with that address; this PE's, if it is
 * in none. */
cuda_gpu cuda_heap_reader(const struct cuda *c, cuda_address at);

/* heap_pieces.c */
gshmem_status_t cuda_heap_grow(struct device *d, struct device_heap_map *map, uint64_t bytes,
                               struct device_piece *piece);
gshmem_status_t cuda_heap_follow(struct device *d, struct device_heap_map *map,
                                 const struct device_piece *piece);
/* The caller has waited for what may still touch the pieces. */
uint64_t cuda_heap_shrink(struct device *d, struct device_heap_map *map, uint64_t bytes);
/* Whether there is a piece that begins at `bytes` or beyond. */
bool cuda_heap_reaches(const struct device_heap_map *map, uint64_t bytes);
uint64_t cuda_heap_piece(struct device *d, const struct device_heap_map *map, uint64_t offset);

/* window.c */
gshmem_status_t cuda_window_take(struct device *d, struct device_heap_map *map, const void *at,
                                 uint64_t bytes, uint64_t offset, struct device_piece *piece);
gshmem_status_t cuda_window_follow(struct device *d, struct device_heap_map *map,
                                   const struct device_piece *piece);
void cuda_window_drop(struct device *d, struct device_heap_map *map, uint64_t offset,
                      uint64_t bytes);

/* multicast.c */
bool cuda_can_multicast(const struct cuda *c);
gshmem_status_t cuda_multicast_open(struct device *d, uint64_t limit, struct device_multicast *m);
gshmem_status_t cuda_multicast_offer(struct device *d, struct device_multicast *m, int n,
                                     struct device_piece *piece);
gshmem_status_t cuda_multicast_join(struct device *d, struct device_multicast *m,
                                    const struct device_piece *piece);
gshmem_status_t cuda_multicast_bind(struct device *d, struct device_multicast *m,
                                    const struct device_heap_map *mine);
void cuda_multicast_shrink(struct device *d, struct device_multicast *m, uint64_t bytes);
void cuda_multicast_close(struct device *d, struct device_multicast *m);

/* buffer.c */
bool cuda_owns(struct device *d, const void *at, size_t bytes);
bool cuda_kernels_see(struct device *d, const void *at, size_t bytes);
gshmem_status_t cuda_pin(struct device *d, void *at, size_t bytes, bool *pinned);
void cuda_unpin(struct device *d, void *at);
gshmem_status_t cuda_export_range(struct device *d, const void *at, size_t bytes, int *fd,
                                  uint64_t *offset);
enum device_nic_order cuda_nic_order(const struct cuda *c);
gshmem_status_t cuda_flush(struct device *d);

#endif
