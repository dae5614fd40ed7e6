/* Memory of this PE that NICs reach: registrations. */
#ifndef GSHMEM_TRANSPORT_VERBS_MEMORY_H
#define GSHMEM_TRANSPORT_VERBS_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nic;
struct verbs;

#define CHUNK_BYTES (16ull << 20) /* of a segment: registered, and its key requested, at once */

/* The registration with a NIC that covers this address of a segment of this PE's, made at first
 * use, and how many bytes from there on. NULL: it cannot be, or it is none of a segment (*bytes
 * is 0 then). */
struct ibv_mr *memory_of(struct verbs *v, struct nic *nic, const void *at, uint64_t *bytes);
struct ibv_mr *memory_of_chunk(struct verbs *v, struct nic *nic, unsigned segment, uint64_t chunk);
/* Whether any NIC holds some of these bytes. */
bool memory_is_pinned(const struct verbs *v, int segment, uint64_t offset, uint64_t bytes);
void memory_forget(struct verbs *v, int segment, uint64_t offset, uint64_t bytes);
void memory_release(struct verbs *v, struct nic *nic);
/* Whole pages for what NICs read and write, to be freed: on kernels before 5.12 a child of fork
 * does not get the pages that are registered, and would miss what else lay there (see
 * ibv_fork_init). */
void *memory_pages(size_t bytes);
/* Any memory of this process. */
struct ibv_mr *memory_register(struct verbs *v, struct nic *nic, void *at, uint64_t bytes,
                               bool of_device, int access);
/* Tries whether a limit of the process leaves room for what is registered at a time; false:
 * logged. */
bool memory_can_be_registered(struct verbs *v);
/* Whether all NICs reach memory of the device, and how, or why not. */
bool memory_of_device(struct verbs *v, char *why, size_t why_size);

#endif
