/* What copies and fills promise the host, by the kind of memory; memory that is registered; what is wrong with
 * pitches. */
#include "device.h"

#include <stdlib.h>

__global__ void wait_for(const volatile int *flag)
{
    while (!*flag)
        __nanosleep(1000);
}

/* Not there until a while after the host has gone on, if it does. */
__global__ void later(int *at, int value)
{
    long long begin = clock64();

    while (clock64() - begin < 20000000)
        __nanosleep(10000);
    *at = value;
}

static cudaStream_t stream;
static int *device, *pinned, *managed, *flag;

/* What is copied to or from memory of the program's own is the caller's again when the call returns. */
static void check_pageable()
{
    static const cudaMemcpyKind from_host[] = {cudaMemcpyDefault, cudaMemcpyHostToDevice};
    static const cudaMemcpyKind to_host[] = {cudaMemcpyDefault, cudaMemcpyDeviceToHost};
    static const cudaMemcpyKind both_host[] = {cudaMemcpyDefault, cudaMemcpyHostToHost};
    static int many[50000], two[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};

    for (int i = 0; i < 2; i++) {
        int value = 11, got = 0;

        later<<<1, 1, 0, stream>>>(device, 1);
        CHECK_CUDA(cudaMemcpyAsync(device, &value, sizeof value, from_host[i], stream));
        value = 99;
        CHECK_CUDA(cudaMemcpyAsync(&got, device, sizeof got, to_host[i], stream));
        CHECK_EQ(got, 11);

        later<<<1, 1, 0, stream>>>(device, 1);
        many[0] = many[49999] = 12;
        CHECK_CUDA(cudaMemcpyAsync(device, many, sizeof many, from_host[i], stream));
        many[0] = many[49999] = 99;
        CHECK_CUDA(cudaMemcpyAsync(&got, device + 49999, sizeof got, to_host[i], stream));
        CHECK_EQ(got, 12);

        later<<<1, 1, 0, stream>>>(device, 1);
        CHECK_CUDA(cudaMemcpy2DAsync(device, 8, two, 16, 8, 2, from_host[i], stream));
        two[1][1] = 99;
        CHECK_CUDA(cudaMemcpy2DAsync(&got, 4, device + 3, 8, 4, 1, to_host[i], stream));
        CHECK_EQ(got, 6);
        two[1][1] = 6;

        /* From host memory to host memory, pinned or not. */
        pinned[0] = 5;
        later<<<1, 1, 0, stream>>>(pinned, 6);
        CHECK_CUDA(cudaMemcpyAsync(pinned + 1, pinned, sizeof got, both_host[i], stream));
        CHECK_EQ(pinned[1], 6);
        later<<<1, 1, 0, stream>>>(pinned, 7);
        CHECK_CUDA(cudaMemcpyAsync(&got, pinned, sizeof got, both_host[i], stream));
        CHECK_EQ(got, 7);
    }
}

/* A little is copied aside: the call does not wait for the stream, and neither do those of pinned memory. */
static void check_going_on()
{
    int value = 21, got = 0, *own = (int *)malloc(1 << 20);

    CHECK(own);
    CHECK_CUDA(cudaHostRegister(own, 1 << 20, cudaHostRegisterDefault));
    own[0] = own[(1 << 18) - 1] = 22;
    *flag = 0;
    wait_for<<<1, 1, 0, stream>>>(flag);
    CHECK_CUDA(cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(pinned, device, sizeof value, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaMemcpyAsync(device, own, 1 << 20, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(own + 1, device, sizeof value, cudaMemcpyDefault, stream));
    value = 99;
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    *(volatile int *)flag = 1;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(*pinned, 21);
    CHECK_EQ(own[1], 22);
    CHECK_CUDA(cudaMemcpy(&got, device + (1 << 18) - 1, sizeof got, cudaMemcpyDefault));
    CHECK_EQ(got, 22);
    CHECK_CUDA(cudaHostUnregister(own));
    free(own);
}

/* Fills of what the host sees are over when the call returns. */
static void check_fills()
{
    later<<<1, 1>>>(managed, 5);
    CHECK_CUDA(cudaMemset(managed, 1, 4));
    CHECK_EQ(*managed, 0x01010101);
    later<<<1, 1>>>(pinned, 5);
    CHECK_CUDA(cudaMemset2D(pinned, 8, 2, 4, 1));
    CHECK_EQ(*pinned, 0x02020202);
}

static cudaMemoryType type_of(const void *at)
{
    cudaPointerAttributes attributes;

    CHECK_CUDA(cudaPointerGetAttributes(&attributes, at));
    return attributes.type;
}

static void check_registered()
{
    char *own = (char *)malloc(10000);

    CHECK(own);
    CHECK_EQ(type_of(own), cudaMemoryTypeUnregistered);
    CHECK_CUDA(cudaHostRegister(own + 1000, 5000, cudaHostRegisterDefault));
    CHECK_EQ(type_of(own + 1000), cudaMemoryTypeHost);
    CHECK_EQ(type_of(own + 5999), cudaMemoryTypeHost);
    CHECK_CUDA_FAILS(cudaHostRegister(own + 2000, 100, cudaHostRegisterDefault),
                     cudaErrorHostMemoryAlreadyRegistered);
    CHECK_CUDA_FAILS(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    CHECK_CUDA_FAILS(cudaFreeHost(own + 1000), cudaErrorInvalidValue);
    CHECK_CUDA_FAILS(cudaHostUnregister(pinned), cudaErrorHostMemoryNotRegistered);
    CHECK_CUDA(cudaHostUnregister(own + 1000));
#ifdef GSHMEM_HOST_DEVICE /* elsewhere a page is registered or it is not */
    CHECK_EQ(type_of(own + 1000), cudaMemoryTypeUnregistered);
#endif
    CHECK_CUDA_FAILS(cudaHostUnregister(own + 1000), cudaErrorHostMemoryNotRegistered);
    free(own);
    CHECK_EQ(type_of(managed), cudaMemoryTypeManaged);
}

static void check_pitches()
{
    for (size_t rows = 1; rows < 3; rows++) {
        CHECK_CUDA_FAILS(cudaMemcpy2D(device, 4, device + 100, 16, 8, rows, cudaMemcpyDefault),
                         cudaErrorInvalidPitchValue);
        CHECK_CUDA_FAILS(cudaMemcpy2DAsync(device, 16, device + 100, 4, 8, rows, cudaMemcpyDefault, stream),
                         cudaErrorInvalidPitchValue);
        CHECK_CUDA_FAILS(cudaMemset2D(device, 4, 0, 8, rows), cudaErrorInvalidValue);
    }
    CHECK_CUDA(cudaMemcpy2D(device, 8, device + 100, 8, 8, 2, cudaMemcpyDefault));
}

int main()
{
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc(&device, 1 << 20));
    CHECK_CUDA(cudaMallocHost(&pinned, 64));
    CHECK_CUDA(cudaMallocManaged(&managed, 64));
    CHECK_CUDA(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
    check_pageable();
    check_going_on();
    check_fills();
    check_registered();
    check_pitches();
    return 0;
}
