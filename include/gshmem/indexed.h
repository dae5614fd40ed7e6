/* Indexed operations: elements of one object, by their numbers (gather, scatter, and sums).
 *
 * Their names have a type or a size: gshmem_long_ixget, gshmem_ixput64_pes, gshmem_double_ix_add …
 * (gshmem/typed.h). An index is the number of an element of the symmetric object. Element i of the
 * local array belongs to element index[i] of the object, on PE `pe`, or in the forms _pes on PE
 * pes[i]:
 *
 *     ixget     dest[i] = source[index[i]] of the PE
 *     ixput     dest[index[i]] of the PE = source[i]
 *     ix_add    dest[index[i]] of the PE += source[i], each sum an atomic update
 *
 * They complete as get, put and atomic_add do: an ixget on return, ixget_nbi by the next quiet;
 * ixput and ix_add have read their source on return, and are complete at the PE after a quiet or
 * a barrier. The source of ixput_nbi may be reused after a quiet.
 *
 * - index and pes may be reused on return, also after the forms _nbi.
 * - The elements of a call are carried out in any order. An index may occur several times: a get
 *   reads the element several times, all sums are made, and of several puts one is the last.
 * - dest and source do not overlap.
 * - With 0 elements nothing else is looked at.
 * - On the host a call with a PE that does not exist, or with an index behind the end of symmetric
 *   memory fails before it moves anything; with GSHMEM_CHECK=memory the object ends where the
 *   program's allocation ends. A kernel checks each element when it comes to it, as a put, get or
 *   atomic_add of its own; an index that leads around the end of the address space, such as a
 *   negative number, is refused.
 *
 * Over TCP the elements for one PE travel together, up to 4,096 in a message. What is on its way
 * takes at most 4 MiB of this PE's memory, however many nodes there are; a call that needs more
 * waits until some has arrived. Over other networks, and for objects in a GPU's memory, each
 * element is a put, get or atomic_add. In kernels, too: of an object that is not mapped. */
#ifndef GSHMEM_INDEXED_H
#define GSHMEM_INDEXED_H

#include "gshmem/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In place of the PE: each element has its own, in pes. */
#define GSHMEM_PE_OF_EACH (-0x7fffffff)

/* Not for programs to call. element: 1, 2, 4, 8 or 16 bytes; type: an enum gshmem_type. */
GSHMEM_API gshmem_status_t gshmem_path_ixput(gshmem_ctx_t ctx, void *dest, const void *source,
                                             const size_t *index, const int *pes, int pe,
                                             size_t element, size_t n);
GSHMEM_API gshmem_status_t gshmem_path_ixget(gshmem_ctx_t ctx, void *dest, const void *source,
                                             const size_t *index, const int *pes, int pe,
                                             size_t element, size_t n, int nbi);
GSHMEM_API gshmem_status_t gshmem_path_ix_add(gshmem_ctx_t ctx, int type, void *dest,
                                              const void *source, const size_t *index,
                                              const int *pes, int pe, size_t n);

#ifdef __cplusplus
}
#endif
#endif
