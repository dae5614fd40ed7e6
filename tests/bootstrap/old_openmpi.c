/* A library with the file name of MPICH's and the handles of Open MPI's, as Open MPI 1.10 is: a
 * communicator of it is refused before any function of it is called with a handle. */
#ifdef LIBRARY

#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED char ompi_mpi_comm_null[64];

EXPORTED int MPI_Initialized(int *flag);
EXPORTED int MPI_Initialized(int *flag)
{
    *flag = 1;
    return 0;
}

EXPORTED int MPI_Finalized(int *flag);
EXPORTED int MPI_Finalized(int *flag)
{
    *flag = 0;
    return 0;
}

#define TAKES_HANDLES(name)                                                                        \
    EXPORTED int name(void);                                                                       \
    EXPORTED int name(void) { abort(); }
TAKES_HANDLES(MPI_Error_string)
TAKES_HANDLES(MPI_Test)
TAKES_HANDLES(MPI_Iallgather)
TAKES_HANDLES(MPI_Comm_test_inter)
TAKES_HANDLES(MPI_Comm_rank)
TAKES_HANDLES(MPI_Comm_size)
TAKES_HANDLES(MPI_Comm_idup)
TAKES_HANDLES(MPI_Comm_set_errhandler)
TAKES_HANDLES(MPI_Comm_free)
TAKES_HANDLES(MPI_Abort)

#else

#include <dlfcn.h>

#include "gshmem.h"
#include "check.h"

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    CHECK(library);
    void *comm = dlsym(library, "ompi_mpi_comm_null");
    gshmem_init_attr_t attr = {.mpi_comm = &comm};

    CHECK_FAILS(gshmem_init_attr(&attr), GSHMEM_ERR_BOOTSTRAP, "an Open MPI before version 3");
    return 0;
}

#endif
