/* A PE whose job is an MPI communicator, of the MPI that this program is compiled with.
 *
 *     given rounds|abort|split [NUMBER]      the world; split: even and odd ranks are two jobs
 *     given early|late                       before MPI_Init, after MPI_Finalize: refused */
#include <mpi.h>

#include "check.h"
#include "drive.h"
#include "runtime/base/log.h"

static void refuse(MPI_Comm *comm, const char *part)
{
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;

    request.mpi_comm = comm;
    CHECK_EQ(bootstrap_open(&request, &b), GSHMEM_ERR_BOOTSTRAP);
    CHECK_HAS(last_error_text(), part);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "rounds";
    MPI_Comm comm = MPI_COMM_WORLD;
    struct bootstrap *b;
    int rank, size, provided;

    if (strcmp(what, "early") == 0) {
        refuse(&comm, "MPI_Init was not called");
        return 0;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(what, "split") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    struct bootstrap_request request = drive_request();
    request.mpi_comm = &comm;
    if (bootstrap_open(&request, &b) != GSHMEM_OK)
        return 3;
    CHECK_STR(b->ops->name, "mpi");
    CHECK_EQ(b->pe, rank);
    CHECK_EQ(b->n_pes, size);
    int status = drive(b, argc - 1, argv + 1);
    if (strcmp(what, "split") == 0)
        MPI_Comm_free(&comm);
    MPI_Finalize();
    if (strcmp(what, "late") == 0)
        refuse(&comm, "MPI_Finalize was called");
    return status;
}
