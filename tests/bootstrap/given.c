/* A PE whose job is an MPI communicator, of the MPI that this program is compiled with.
 *
 *     given rounds|abort|split [NUMBER]      the world; split: even and odd ranks are two jobs
 *     given early|late                       before MPI_Init, after MPI_Finalize: refused
 *     given inter                            a communicator of two groups: refused
 *     given absent                           rank 0 comes alone, and the others when it has given up
 *     given lagging                          rank 0 comes to a round when the others have given it up */
#include <mpi.h>

#include "check.h"
#include "drive.h"
#include "runtime/base/log.h"

static void refuse_with(gshmem_status_t status, MPI_Comm *comm, const char *part)
{
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;

    request.mpi_comm = comm;
    CHECK_EQ(bootstrap_open(&request, &b), status);
    CHECK_HAS(last_error_text(), part);
}

static void refuse(MPI_Comm *comm, const char *part)
{
    refuse_with(GSHMEM_ERR_BOOTSTRAP, comm, part);
}

static void refuse_two_groups(int rank)
{
    MPI_Comm half, both;

    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 7, &both);
    refuse_with(GSHMEM_ERR_ARGUMENT, &both, "MPI_Intercomm_merge");
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static struct bootstrap_request brief(MPI_Comm *comm, int seconds)
{
    struct bootstrap_request request = drive_request();

    request.mpi_comm = comm;
    request.timeout_seconds = seconds;
    return request;
}

/* Each gets a time-out of its own, whoever comes first. */
static void come_apart(MPI_Comm *comm, int rank)
{
    struct bootstrap_request request = brief(comm, 1);
    struct bootstrap *b;

    if (rank == 0)
        CHECK_EQ(bootstrap_open(&request, &b), GSHMEM_ERR_TIMEOUT);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0)
        CHECK_EQ(bootstrap_open(&request, &b), GSHMEM_ERR_TIMEOUT);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What a round that was given up still brings must not come to lie in memory that has another use by then. */
static void lag(MPI_Comm *comm, int rank)
{
    enum { BLOCKS = 400, BYTES = 16 * 1024, FILL = 0x5a };
    struct bootstrap_request request = brief(comm, 5); /* in which all open it, also on a busy machine */
    static unsigned char *block[BLOCKS];
    struct bootstrap *b;

    CHECK_EQ(bootstrap_open(&request, &b), GSHMEM_OK);
    CHECK_EQ(b->ops->publish(b, "0123456789abcdef", 16), GSHMEM_OK);
    if (rank != 0) {
        CHECK_EQ(b->ops->fence(b), GSHMEM_ERR_TIMEOUT);
        b->ops->close(b);
        for (int i = 0; i < BLOCKS; i++) {
            size_t bytes = (size_t)(i + 1) * BYTES / BLOCKS; /* of every size that a part of it can have */
            CHECK(block[i] = malloc(bytes));
            memset(block[i], FILL, bytes);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        b->ops->fence(b); /* the others are not told apart from late ones: either is right */
        b->ops->close(b);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank != 0 && i < BLOCKS; i++) {
        for (size_t k = 0; k < (size_t)(i + 1) * BYTES / BLOCKS; k++)
            CHECK_EQ(block[i][k], FILL);
    }
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
    if (strcmp(what, "inter") == 0 || strcmp(what, "absent") == 0 || strcmp(what, "lagging") == 0) {
        if (strcmp(what, "inter") == 0)
            refuse_two_groups(rank);
        else
            (strcmp(what, "absent") == 0 ? come_apart : lag)(&comm, rank);
        MPI_Finalize();
        return 0;
    }
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
