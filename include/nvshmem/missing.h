/* What NVSHMEM offers and this does not: a call of one of these does not compile, and the message
 * says what to use instead. */
#ifndef NVSHMEM_MISSING_H
#define NVSHMEM_MISSING_H

#ifdef __cplusplus

/* A template, so that the message comes where a program calls it, in host code or kernels. */
#define NVSHMEM_MISSING(name, instead)                                                             \
    template <class... argument> NVSHMEM_EITHER int name(argument...)                              \
    {                                                                                              \
        static_assert(sizeof...(argument) == (size_t)-1, #name " is not in GSHMEM: " instead);     \
        return 0;                                                                                  \
    }

#else

#define NVSHMEM_MISSING(name, instead)                                                             \
    int name(void *, ...) __attribute__((error(#name " is not in GSHMEM: " instead)));

#endif

NVSHMEM_MISSING(nvshmemx_team_init, "use gshmem_team_split_list, or nvshmem_team_split_strided")
NVSHMEM_MISSING(nvshmemx_team_get_uniqueid, "use gshmem_team_split_list for a team of any PEs")
NVSHMEM_MISSING(nvshmemx_buffer_register_symmetric, "allocate the buffer with nvshmem_malloc")
NVSHMEM_MISSING(nvshmemx_buffer_unregister_symmetric, "free what nvshmem_malloc gave by nvshmem_free")

/* Queue pairs are the library's own; contexts order operations independently of others. */
NVSHMEM_MISSING(nvshmemx_qp_create, "use gshmem_ctx_create, and gshmem_ctx_… in its place")
NVSHMEM_MISSING(nvshmemx_qp_quiet, "use gshmem_ctx_quiet with a context")
NVSHMEM_MISSING(nvshmemx_qp_fence, "use gshmem_ctx_fence with a context")

#undef NVSHMEM_MISSING
#endif
