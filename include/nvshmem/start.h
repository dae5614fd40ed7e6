/* Starting NVSHMEM from an MPI communicator or a unique id; and its state. */
#ifndef NVSHMEM_START_H
#define NVSHMEM_START_H

#include <string.h>

#include "nvshmem/base.h"

/* An opaque id: one PE makes it and gives its bytes to all others. */
typedef gshmem_uniqueid_t nvshmemx_uniqueid_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER {0, {0}}

typedef struct {
    int version;
    nvshmemx_uniqueid_t id;
    int myrank;
    int nranks;
} nvshmemx_uniqueid_args_t;
#define NVSHMEMX_UNIQUEID_ARGS_INITIALIZER {1, NVSHMEMX_UNIQUEID_INITIALIZER, 0, 0}

typedef struct {
    int version;
    nvshmemx_uniqueid_args_t uid_args;
} nvshmemx_init_args_t;
#define NVSHMEMX_INIT_ARGS_INITIALIZER {1, NVSHMEMX_UNIQUEID_ARGS_INITIALIZER}

typedef struct {
    int version;
    void *mpi_comm; /* points to an MPI_Comm */
    nvshmemx_init_args_t args;
} nvshmemx_init_attr_t;
#define NVSHMEMX_INIT_ATTR_INITIALIZER {1, NULL, NVSHMEMX_INIT_ARGS_INITIALIZER}

/* Flags of nvshmemx_init_attr: one of them, or 0 for the launcher that started the program. */
enum {
    NVSHMEMX_INIT_THREAD_PES = 1 << 0,
    NVSHMEMX_INIT_WITH_MPI_COMM = 1 << 1,
    NVSHMEMX_INIT_WITH_SHMEM = 1 << 2,
    NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3
};

/* Results of nvshmemx_init_status. LIMITED_MPG and FULL_MPG are for GPUs that PEs share. */
enum {
    NVSHMEM_STATUS_NOT_INITIALIZED = 0,
    NVSHMEM_STATUS_IS_BOOTSTRAPPED,
    NVSHMEM_STATUS_IS_INITIALIZED,
    NVSHMEM_STATUS_LIMITED_MPG,
    NVSHMEM_STATUS_FULL_MPG,
    NVSHMEM_STATUS_INVALID = INT_MAX
};

static inline int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *uniqueid)
{
    return (int)gshmem_get_uniqueid(uniqueid);
}

static inline int nvshmemx_set_attr_uniqueid_args(const int myrank, const int nranks,
                                                  const nvshmemx_uniqueid_t *uniqueid,
                                                  nvshmemx_init_attr_t *attr)
{
    if (!uniqueid || !attr || myrank < 0 || myrank >= nranks)
        return NVSHMEMX_ERROR_INVALID_VALUE;
    attr->args.uid_args.id = *uniqueid;
    attr->args.uid_args.myrank = myrank;
    attr->args.uid_args.nranks = nranks;
    return NVSHMEMX_SUCCESS;
}

static inline int nvshmemx_set_attr_mpi_comm_args(void *mpi_comm, nvshmemx_init_attr_t *attr)
{
    if (!mpi_comm || !attr)
        return NVSHMEMX_ERROR_INVALID_VALUE;
    attr->mpi_comm = mpi_comm;
    return NVSHMEMX_SUCCESS;
}

static inline int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes)
{
    gshmem_init_attr_t attr;

    memset(&attr, 0, sizeof attr);
    if (flags == NVSHMEMX_INIT_WITH_MPI_COMM && attributes) {
        attr.mpi_comm = attributes->mpi_comm;
    } else if (flags == NVSHMEMX_INIT_WITH_UNIQUEID && attributes) {
        attr.uid = &attributes->args.uid_args.id;
        attr.pe = attributes->args.uid_args.myrank;
        attr.n_pes = attributes->args.uid_args.nranks;
    } else if (flags != 0) {
        /* PEs that are threads, and jobs of another OpenSHMEM library */
        return NVSHMEMX_ERROR_NOT_SUPPORTED;
    }
    gshmem_status_t status = gshmem_init_attr(&attr);
    return (int)(status ? status : gshmem_path_own_memory());
}

static inline int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t *attr)
{
    return nvshmemx_init_attr(flags, attr);
}

static inline void nvshmemx_hostlib_finalize(void)
{
    gshmem_raise(gshmem_finalize());
}

static inline int nvshmemx_init_status(void)
{
    return gshmem_initialized() ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED;
}

#endif
