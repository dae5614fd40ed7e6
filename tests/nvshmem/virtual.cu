/* Memory of the program's own by CUDA's driver API, registered as symmetric, as NVSHMEM's users do it. */
#include <cuda.h>

#include "check.h"

#define CHECK_CU(call)                                                                             \
    do {                                                                                           \
        CUresult check_result = (call);                                                            \
        const char *check_text = "?";                                                              \
        if (check_result != CUDA_SUCCESS) {                                                        \
            cuGetErrorString(check_result, &check_text);                                           \
            CHECK_FAIL("%s: %s", #call, check_text);                                               \
        }                                                                                          \
    } while (0)

enum { N = 2048 };

static int device;
static CUmemAllocationProp prop;

static void *make(size_t bytes, int pieces)
{
    CUmemAccessDesc access = {};
    CUdeviceptr at = 0;

    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_CU(cuMemAddressReserve(&at, bytes * pieces, 0, 0, 0));
    for (int i = 0; i < pieces; i++) {
        CUmemGenericAllocationHandle piece;
        CHECK_CU(cuMemCreate(&piece, bytes, &prop, 0));
        CHECK_CU(cuMemMap(at + i * bytes, bytes, 0, piece, 0));
        CHECK_CU(cuMemRelease(piece));
    }
    CHECK_CU(cuMemSetAccess(at, bytes * pieces, &access, 1));
    return (void *)at;
}

static void release(void *at, size_t bytes)
{
    CUmemGenericAllocationHandle piece;

    CHECK_CU(cuMemRetainAllocationHandle(&piece, at));
    CHECK_CU(cuMemUnmap((CUdeviceptr)at, bytes));
    CHECK_CU(cuMemAddressFree((CUdeviceptr)at, bytes));
    CHECK_CU(cuMemRelease(piece));
}

__global__ void fill(float *source, int mype)
{
    for (int i = threadIdx.x; i < N; i += blockDim.x)
        source[i] = (float)(i + mype);
}

__global__ void send(float *dest, const float *source, int pe)
{
    nvshmemx_float_put_block(dest, source, N, pe);
}

static void use(size_t bytes, int pieces)
{
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes(), left = (mype + npes - 1) % npes;
    void *own = make(bytes, pieces);
    float *shared = (float *)nvshmemx_buffer_register_symmetric(own, bytes * pieces, 0), got[N];
    cudaStream_t stream;

    CHECK(shared);
    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_CUDA(cudaMemset(shared, 0, bytes * pieces));
    float *source = shared, *dest = shared + bytes * pieces / sizeof *shared - N;
    fill<<<1, 64, 0, stream>>>(source, mype);
    nvshmemx_barrier_all_on_stream(stream);
    CHECK_EQ(nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest, source, N, stream), 0);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(got, dest, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        CHECK_EQ(got[i], npes * i + npes * (npes - 1) / 2);
    nvshmem_barrier_all(); /* all have read theirs */
    send<<<1, 64, 0, stream>>>(dest, source, (mype + 1) % npes);
    nvshmemx_barrier_all_on_stream(stream);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaMemcpy(got, (char *)own + ((char *)dest - (char *)shared), sizeof got, cudaMemcpyDefault));
    for (int i = 0; i < N; i++)
        CHECK_EQ(got[i], i + left);
    nvshmem_barrier_all();
    CHECK_EQ(nvshmemx_buffer_unregister_symmetric(shared, bytes * pieces), 0);
    CHECK_CUDA(cudaStreamDestroy(stream));
    if (pieces == 1)
        release(own, bytes);
    else
        CHECK_CU(cuMemUnmap((CUdeviceptr)own, bytes * pieces));
    if (pieces > 1)
        CHECK_CU(cuMemAddressFree((CUdeviceptr)own, bytes * pieces));
}

int main()
{
    size_t granularity = 0;

    nvshmem_init();
    CHECK_CUDA(cudaGetDevice(&device));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CHECK_CU(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    use(2 * granularity, 1);
    use(granularity, 3);
    CHECK_EQ(cuMemUnmap((CUdeviceptr)&granularity, granularity), CUDA_ERROR_INVALID_VALUE);
    nvshmem_finalize();
    return 0;
}
