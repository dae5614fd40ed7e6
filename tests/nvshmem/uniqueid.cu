/* Starting by a unique id that the program carries to its processes: here through fork.
 *
 *     uniqueid PEs */
#include <sys/wait.h>

#include "check.h"

__global__ void tell(int *from)
{
    nvshmem_int_p(from + nvshmem_my_pe(), 10 + nvshmem_my_pe(), 0);
}

static int run(const nvshmemx_uniqueid_t *id, int rank, int ranks)
{
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;

    CHECK_EQ(nvshmemx_set_attr_uniqueid_args(rank, ranks, id, &attr), 0);
    CHECK_EQ(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr), 0);
    CHECK_EQ(nvshmem_my_pe(), rank);
    CHECK_EQ(nvshmem_n_pes(), ranks);
    int *from = (int *)nvshmem_calloc(ranks, sizeof(int));
    CHECK(from);
    tell<<<1, 1>>>(from);
    nvshmemx_barrier_all_on_stream(0);
    CHECK_LAUNCH();
    for (int i = 0; rank == 0 && i < ranks; i++) {
        int one = -1;
        CHECK_CUDA(cudaMemcpy(&one, from + i, sizeof one, cudaMemcpyDefault));
        CHECK_EQ(one, 10 + i);
    }
    nvshmem_free(from);
    nvshmem_finalize();
    return 0;
}

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 2, failed, status;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;

    CHECK_EQ(nvshmemx_get_uniqueid(&id), 0);
    CHECK(nvshmemx_set_attr_uniqueid_args(2, 2, &id, &attr) != 0);
    for (int rank = 1; rank < ranks; rank++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            return run(&id, rank, ranks);
    }
    failed = run(&id, 0, ranks);
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
