/* How do I use GSHMEM in an MPI program? Give it a communicator: its ranks become the PEs. */
#include <gshmem.h>
#include <mpi.h>
#include <stdio.h>

static int mine, sum;

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    gshmem_init_attr_t attr = {.mpi_comm = &comm};
    int rank, expected;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    if (gshmem_init_attr(&attr))
        MPI_Abort(comm, 1);

    mine = rank * rank;
    gshmem_raise(gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &sum, &mine, 1));
    MPI_Allreduce(&mine, &expected, 1, MPI_INT, MPI_SUM, comm);

    int failed = gshmem_my_pe() != rank || sum != expected;
    if (rank == 0)
        printf("mpi: %d ranks, the sum of their squares is %d by GSHMEM and %d by MPI: %s\n",
               gshmem_n_pes(), sum, expected, failed ? "wrong" : "right");
    failed |= gshmem_finalize() != GSHMEM_OK;
    MPI_Finalize();
    return failed;
}
