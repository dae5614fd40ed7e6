/* What NVSHMEM offers and GSHMEM does not: a call of one of these does not compile, and the message
 * says what to use instead. */
#ifndef NVSHMEM_MISSING_H
#define NVSHMEM_MISSING_H

#include "nvshmem/base.h"

typedef int nvshmemx_qp_handle_t;
#define NVSHMEMX_QP_DEFAULT 1
#define NVSHMEMX_QP_ANY     0x7fffffff
#define NVSHMEMX_QP_ALL     0x7fffffff

#ifdef __cplusplus

/* A template: the message then appears where a program calls it, in host code or kernels. */
#define NVSHMEM_MISSING_AS(name, text)                                                             \
    template <class... argument> NVSHMEM_EITHER int name(argument...)                              \
    {                                                                                              \
        static_assert(sizeof...(argument) == (size_t)-1, text);                                    \
        return 0;                                                                                  \
    }

#else

#define NVSHMEM_MISSING_AS(name, text) int name(void *, ...) __attribute__((error(text)));

#endif

#define NVSHMEM_MISSING(name, instead) NVSHMEM_MISSING_AS(name, #name " is not in GSHMEM: " instead)

NVSHMEM_MISSING(nvshmemx_team_init, "use gshmem_team_split_list, or nvshmem_team_split_strided")
NVSHMEM_MISSING(nvshmemx_team_get_uniqueid, "use gshmem_team_split_list for a team of any PEs")
NVSHMEM_MISSING(nvshmemx_buffer_register_symmetric_at_preferred_address,
                "use nvshmemx_buffer_register_symmetric, which chooses the address")

NVSHMEM_MISSING_AS(nvshmem_team_same_mype_node,
                   "NVSHMEMX_TEAM_SAME_MYPE_NODE is not in GSHMEM: use nvshmem_team_split_2d")
#define NVSHMEMX_TEAM_SAME_MYPE_NODE nvshmem_team_same_mype_node(NULL)

/* The library chooses queue pairs itself; contexts order operations independently of each other, as
 * queue pairs do. */
NVSHMEM_MISSING(nvshmemx_qp_create, "use gshmem_ctx_create, and gshmem_ctx_… with its contexts")
NVSHMEM_MISSING(nvshmemx_qp_quiet, "use gshmem_ctx_quiet with a context")
NVSHMEM_MISSING(nvshmemx_qp_fence, "use gshmem_ctx_fence with a context")
NVSHMEM_MISSING(nvshmemx_qp_signal_op, "use gshmem_ctx_signal_set or _add with a context")

#ifdef __cplusplus
#include "nvshmem/qp.h" /* generated */

namespace nvshmemx
{
#define NVSHMEM_MISSING_TILE(name)                                                                 \
    NVSHMEM_MISSING_AS(name, "the tile API is not in GSHMEM: use nvshmemx_TYPE_put_block, "        \
                             "nvshmemx_TYPE_sum_reduce_block, …, row by row")
NVSHMEM_MISSING_TILE(make_shape)
NVSHMEM_MISSING_TILE(make_stride)
NVSHMEM_MISSING_TILE(make_layout)
NVSHMEM_MISSING_TILE(Tensor)
#undef NVSHMEM_MISSING_TILE
}
#endif

#undef NVSHMEM_MISSING
#undef NVSHMEM_MISSING_AS
#endif
