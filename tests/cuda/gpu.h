/* For tests that play the program beside the library: this PE's (simulated) GPU, by the driver. */
#ifndef TESTS_CUDA_GPU_H
#define TESTS_CUDA_GPU_H

#include "../check.h"
#include "device/cuda/driver.h"
#include "gshmem/stream.h"

static struct cuda_driver driver;
static cuda_context context;
static cuda_gpu gpu;

/* After gshmem_init, which has made the PE's GPU current. */
static inline void open_gpu(void)
{
    char why[200];

    CHECK(cuda_driver_open(&driver, why, sizeof why));
    CHECK_EQ(driver.context_gpu(&gpu), CUDA_OK);
    CHECK_EQ(driver.primary_retain(&context, gpu), CUDA_OK);
}

static inline gshmem_stream_t new_stream(void)
{
    cuda_stream stream;

    CHECK_EQ(driver.stream_create(&stream, CUDA_STREAM_NON_BLOCKING), CUDA_OK);
    return (gshmem_stream_t)stream;
}

static inline void finish(gshmem_stream_t stream)
{
    CHECK_EQ(driver.stream_wait(stream), CUDA_OK);
}

static inline void end_stream(gshmem_stream_t stream)
{
    finish(stream);
    CHECK_EQ(driver.stream_destroy(stream), CUDA_OK);
}

static inline void close_gpu(void)
{
    CHECK_EQ(driver.context_set(NULL), CUDA_OK);
    CHECK_EQ(driver.primary_release(gpu), CUDA_OK);
    cuda_driver_close(&driver);
}

#endif
