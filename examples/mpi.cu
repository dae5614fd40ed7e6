/* How do kernels and MPI use the same memory? Kernels put into symmetric memory, MPI sends it on, and
 * receives into it. Where that is GPU memory, MPI has to be one that takes it ("CUDA-aware"). */
#include <gshmem.h>
#include <mpi.h>
#include <stdio.h>

enum { VALUES = 1000, THREADS = 128 };

__global__ void put_right(long *dest, long *source)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes();

    for (int i = threadIdx.x; i < VALUES; i += THREADS)
        source[i] = 10000L * me + i;
    gshmem_long_put_block(dest, source, VALUES, (me + 1) % n);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    gshmem_init_attr_t attr = {};
    static long result[VALUES];
    int rank, ranks, wrong = 0, all_wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    attr.mpi_comm = &comm;
    if (gshmem_init_attr(&attr))
        MPI_Abort(comm, 1);
    long *source = (long *)gshmem_malloc(VALUES * sizeof *source);
    long *dest = (long *)gshmem_malloc(VALUES * sizeof *dest);
    if (!source || !dest)
        MPI_Abort(comm, 1);

    put_right<<<1, THREADS>>>(dest, source);
    if (cudaDeviceSynchronize())
        MPI_Abort(comm, 1);
    gshmem_barrier_all(); /* what was put has arrived, and nobody puts any more */

    /* And back to where it came from. */
    MPI_Sendrecv(dest, VALUES, MPI_LONG, (rank + ranks - 1) % ranks, 0, source, VALUES, MPI_LONG,
                 (rank + 1) % ranks, 0, comm, MPI_STATUS_IGNORE);
    wrong = cudaMemcpy(result, source, sizeof result, cudaMemcpyDefault) != cudaSuccess;
    for (int i = 0; i < VALUES; i++)
        wrong += result[i] != 10000L * rank + i;
    if (cudaMemcpy(result, dest, sizeof result, cudaMemcpyDefault) != cudaSuccess ||
        result[VALUES - 1] != 10000L * ((rank + ranks - 1) % ranks) + VALUES - 1)
        wrong++;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 0)
        printf("mpi: kernels of %d PEs put %d values, and MPI sent them back: %s\n", ranks, VALUES,
               all_wrong ? "wrong" : "right");
    gshmem_raise(gshmem_free(dest));
    gshmem_raise(gshmem_free(source));
    int failed = all_wrong || gshmem_finalize() != GSHMEM_OK;
    MPI_Finalize();
    return failed;
}
