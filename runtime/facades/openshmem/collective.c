/* Collectives without a type: on bytes over teams, and those of active sets. */
#include "runtime/facades/openshmem/openshmem.h"

void pshmem_barrier_all(void)
{
    settle(gshmem_barrier_all());
}
WEAK(shmem_barrier_all)

void pshmem_sync_all(void)
{
    settle(gshmem_sync_all());
}
WEAK(shmem_sync_all)

int pshmem_team_sync(shmem_team_t team)
{
    return (int)gshmem_team_sync(team_number(team));
}
WEAK(shmem_team_sync)

int pshmem_broadcastmem(shmem_team_t team, void *dest, const void *source, size_t nelems,
                        int PE_root)
{
    return (int)gshmem_broadcastmem(team_number(team), dest, source, nelems, PE_root);
}
WEAK(shmem_broadcastmem)

int pshmem_collectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)
{
    return (int)gshmem_collectmem(team_number(team), dest, source, nelems);
}
WEAK(shmem_collectmem)

int pshmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)
{
    return (int)gshmem_fcollectmem(team_number(team), dest, source, nelems);
}
WEAK(shmem_fcollectmem)

int pshmem_alltoallmem(shmem_team_t team, void *dest, const void *source, size_t nelems)
{
    return (int)gshmem_alltoallmem(team_number(team), dest, source, nelems);
}
WEAK(shmem_alltoallmem)

int pshmem_alltoallsmem(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst,
                        ptrdiff_t sst, size_t nelems)
{
    return (int)gshmem_alltoallsmem(team_number(team), dest, source, dst, sst, 1, nelems);
}
WEAK(shmem_alltoallsmem)

/* ---- Active sets ---- */

#define TEAM(name) active_set(name, PE_start, logPE_stride, PE_size, pSync)

void pshmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    gshmem_team_t team = TEAM("shmem_barrier");

    if (team != GSHMEM_TEAM_INVALID)
        settle_set(team, gshmem_barrier(team));
}
WEAK(shmem_barrier)

void pshmem_sync(int PE_start, int logPE_stride, int PE_size, long *pSync)
{
    gshmem_team_t team = TEAM("shmem_sync");

    if (team != GSHMEM_TEAM_INVALID)
        settle_set(team, gshmem_team_sync(team));
}
WEAK(shmem_sync)

/* The two sizes of each; what follows is in bytes. */
#define BY_SIZE(bits)                                                                              \
    void pshmem_broadcast##bits(void *dest, const void *source, size_t nelems, int PE_root,        \
                                int PE_start, int logPE_stride, int PE_size, long *pSync)          \
    {                                                                                              \
        gshmem_team_t team = TEAM("shmem_broadcast" #bits);                                        \
                                                                                                   \
        if (team != GSHMEM_TEAM_INVALID) /* the root's dest stays as it is */                      \
            settle_set(team, gshmem_path_broadcast_others(team, dest, source,                      \
                                                          gshmem_bytes(nelems, bits / 8),          \
                                                          PE_root));                               \
    }                                                                                              \
    WEAK(shmem_broadcast##bits)                                                                    \
                                                                                                   \
    void pshmem_alltoalls##bits(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,      \
                                size_t nelems, int PE_start, int logPE_stride, int PE_size,        \
                                long *pSync)                                                       \
    {                                                                                              \
        gshmem_team_t team = TEAM("shmem_alltoalls" #bits);                                        \
                                                                                                   \
        if (team != GSHMEM_TEAM_INVALID)                                                           \
            settle_set(team, gshmem_alltoallsmem(team, dest, source, dst, sst, bits / 8, nelems)); \
    }                                                                                              \
    WEAK(shmem_alltoalls##bits)

#define MOVE(name, bits)                                                                           \
    void pshmem_##name##bits(void *dest, const void *source, size_t nelems, int PE_start,          \
                             int logPE_stride, int PE_size, long *pSync)                           \
    {                                                                                              \
        gshmem_team_t team = TEAM("shmem_" #name #bits);                                           \
                                                                                                   \
        if (team != GSHMEM_TEAM_INVALID)                                                           \
            settle_set(team, gshmem_##name##mem(team, dest, source,                                \
                                                gshmem_bytes(nelems, bits / 8)));                  \
    }                                                                                              \
    WEAK(shmem_##name##bits)

BY_SIZE(32)
BY_SIZE(64)
MOVE(collect, 32)
MOVE(collect, 64)
MOVE(fcollect, 32)
MOVE(fcollect, 64)
MOVE(alltoall, 32)
MOVE(alltoall, 64)
