/* The driver API beside the runtime's: its version. cuMemUnmap: addresses stay the reservation's while memory goes, and memory keeps its contents. */
#include "device.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK_CU(call) CHECK_EQ(call, CUDA_SUCCESS)

enum { PIECES = 3 };

static size_t piece_bytes;
static char *watched; /* where another thread maps memory as soon as it can; NULL: nowhere */
static void *taken;
static bool old_system; /* without MREMAP_DONTUNMAP */

/* The C library's, as the device calls it, and then what another thread may do at that moment. */
extern "C" void *mremap(void *from, size_t was, size_t bytes, int flags, ...) noexcept
{
    const int no_unmap = 4; /* MREMAP_DONTUNMAP */
    va_list more;

    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : nullptr;
    va_end(more);
    if (old_system && flags & no_unmap) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    void *moved = (void *)syscall(SYS_mremap, from, was, bytes, flags, to);
    if (watched && from == watched)
        taken = mmap(from, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return moved;
}

static void allow(CUdeviceptr at, const CUmemAllocationProp *prop)
{
    CUmemAccessDesc access = {};

    access.location = prop->location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_CU(cuMemSetAccess(at, piece_bytes, &access, 1));
}

/* Memory with a handle: it is mapped elsewhere afterwards, with what it had. */
static void check_moved(CUdeviceptr from, CUdeviceptr to, const CUmemAllocationProp *prop)
{
    CUmemGenericAllocationHandle piece;

    CHECK_CU(cuMemCreate(&piece, piece_bytes, prop, 0));
    CHECK_CU(cuMemMap(from, piece_bytes, 0, piece, 0));
    allow(from, prop);
    for (size_t i = 0; i < piece_bytes; i += 4096)
        ((char *)from)[i] = (char)(i / 4096);
    watched = (char *)from;
    taken = nullptr;
    CHECK_CU(cuMemUnmap(from, piece_bytes));
    watched = nullptr;
    CHECK(taken != (void *)from);
    if (taken)
        CHECK_EQ(munmap(taken, piece_bytes), 0);
    CHECK_CU(cuMemMap(to, piece_bytes, 0, piece, 0));
    allow(to, prop);
    for (size_t i = 0; i < piece_bytes; i += 4096)
        CHECK_EQ(((char *)to)[i], (char)(i / 4096));
    CHECK_CU(cuMemUnmap(to, piece_bytes));
    CHECK_CU(cuMemRelease(piece));
}

/* Memory without one is gone, and the addresses are free for other memory, which is new. */
static void check_gone(CUdeviceptr at, const CUmemAllocationProp *prop)
{
    for (int i = 0; i < 3; i++) {
        CUmemGenericAllocationHandle piece;
        CHECK_CU(cuMemCreate(&piece, piece_bytes, prop, 0));
        CHECK_CU(cuMemMap(at, piece_bytes, 0, piece, 0));
        CHECK_CU(cuMemRelease(piece));
        allow(at, prop);
        CHECK_EQ(*(char *)at, 0);
        *(char *)at = 1;
        CHECK_CU(cuMemUnmap(at, piece_bytes));
    }
}

/* The driver's version is the same by both interfaces, and not older than the runtime's. */
static void check_versions()
{
    int driver = 0, driver_too = 0, runtime = 0;

    CHECK_CU(cuDriverGetVersion(&driver));
    CHECK_CUDA(cudaDriverGetVersion(&driver_too));
    CHECK_CUDA(cudaRuntimeGetVersion(&runtime));
    CHECK_EQ(driver, CUDA_VERSION);
    CHECK_EQ(driver_too, driver);
    CHECK_EQ(runtime, CUDART_VERSION);
    CHECK(runtime <= driver);
    CHECK_EQ(cudaDriverGetVersion(nullptr), cudaErrorInvalidValue);
}

int main()
{
    CUmemAllocationProp prop = {};
    CUdeviceptr at = 0;

    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CHECK_CU(cuInit(0));
    check_versions();
    CHECK_CU(cuMemGetAllocationGranularity(&piece_bytes, &prop,
                                           CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    CHECK_CU(cuMemAddressReserve(&at, PIECES * piece_bytes, 0, 0, 0));
    check_moved(at + piece_bytes, at, &prop);
    check_gone(at + piece_bytes, &prop);
    old_system = true;
    check_moved(at + piece_bytes, at + 2 * piece_bytes, &prop);
    CHECK_CU(cuMemAddressFree(at, PIECES * piece_bytes));
    return 0;
}
