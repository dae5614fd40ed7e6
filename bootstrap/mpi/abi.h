/* What mpi.c calls of an MPI library, taken from the one that is loaded in the process. No header
 * of MPI is needed: the two families of binary interfaces differ in handles and constants, and have
 * stayed as they are since Open MPI 3 and MPICH 3.1. MPI_FAMILY_OMPI or MPI_FAMILY_MPICH is
 * defined. */
#ifndef GSHMEM_BOOTSTRAP_MPI_ABI_H
#define GSHMEM_BOOTSTRAP_MPI_ABI_H

#include <stddef.h>

#ifdef MPI_FAMILY_OMPI /* handles are addresses of objects, which have names */
typedef void *mpi_handle;
#else /* handles are numbers, as are those of Intel MPI, MVAPICH and Cray MPI */
typedef int mpi_handle;
#endif

enum { ABI_ERROR_STRING = 1024 }; /* MPI_MAX_ERROR_STRING is 256, 512 or 1024 */

struct mpi_abi {
    /* handles, and where results of calls that nobody wants go */
    mpi_handle comm_null, byte, errors_return;
    void *status_ignore;
    int (*Initialized)(int *flag);
    int (*Finalized)(int *flag);
    int (*Error_string)(int error, char *text, int *length);
    int (*Test)(mpi_handle *request, int *flag, void *status);
    int (*Iallgather)(const void *from, int n, mpi_handle type, void *to, int each,
                      mpi_handle to_type, mpi_handle comm, mpi_handle *request);
    int (*Comm_test_inter)(mpi_handle comm, int *flag);
    int (*Comm_rank)(mpi_handle comm, int *rank);
    int (*Comm_size)(mpi_handle comm, int *size);
    int (*Comm_idup)(mpi_handle comm, mpi_handle *copy, mpi_handle *request);
    int (*Comm_set_errhandler)(mpi_handle comm, mpi_handle handler);
    int (*Comm_free)(mpi_handle *comm);
    int (*Abort)(mpi_handle comm, int status);
};

/* Fills it from the MPI of this family that is loaded; the name of what is missing, or NULL. */
const char *abi_fill(struct mpi_abi *abi);

#endif
