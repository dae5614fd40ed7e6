/* NVSHMEM in an MPI program: started by a communicator, whose ranks become the PEs. */
#include <mpi.h>

#include "check.h"

__global__ void add_rank(int *sum)
{
    nvshmem_int_atomic_add(sum, nvshmem_my_pe() + 1, 0);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    int rank = -1, ranks = 0, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    attr.mpi_comm = &comm;
    CHECK_CUDA(cudaSetDevice(rank)); /* one host */
    CHECK_EQ(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr), 0);
    CHECK_EQ(nvshmem_my_pe(), rank);
    CHECK_EQ(nvshmem_n_pes(), ranks);

    int *total = (int *)nvshmem_calloc(1, sizeof(int));
    add_rank<<<1, 1>>>(total);
    CHECK_LAUNCH();
    nvshmem_barrier_all();
    CHECK_CUDA(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
    MPI_Bcast(&sum, 1, MPI_INT, 0, comm);
    CHECK_EQ(sum, ranks * (ranks + 1) / 2);
    nvshmem_free(total);
    nvshmem_finalize();
    MPI_Finalize();
    return 0;
}
