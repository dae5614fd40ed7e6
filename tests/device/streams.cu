/* Streams, events and host functions: what is in order, what runs beside, what is waited for. */
#include "device.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

static void pause_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};

    nanosleep(&t, nullptr);
}

__global__ void append(int *list, int *count, int value)
{
    list[(*count)++] = value;
}

__global__ void hold(volatile int *gate)
{
    while (*gate == 0)
        __nanosleep(1000);
}

__global__ void stamp(volatile int *order, int *next, int mine)
{
    order[mine] = atomicAdd(next, 1);
}

/* One stream: kernels, copies, fills and calls, each after the one before. */
static void host_step(void *argument)
{
    int *words = (int *)argument;

    words[1] = words[0] + 1;
}

static void check_order()
{
    int *words = shared_array<int>(8), *list = shared_array<int>(200), *count = &words[4];
    cudaStream_t stream;

    CHECK_CUDA(cudaStreamCreate(&stream));
    hold<<<1, 1, 0, stream>>>(&words[7]); /* so that what follows has to queue */
    for (int i = 0; i < 100; i++)
        append<<<1, 1, 0, stream>>>(list, count, i);
    CHECK_CUDA(cudaMemcpyAsync(&words[0], count, sizeof(int), cudaMemcpyDefault, stream));
    CHECK_CUDA(cudaLaunchHostFunc(stream, host_step, words));
    CHECK_CUDA(cudaMemcpyAsync(&words[2], &words[1], sizeof(int), cudaMemcpyDefault, stream));
    CHECK_CUDA(cudaMemsetAsync(&words[1], 0, sizeof(int), stream));
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    CHECK_EQ(words[0], 0);
    *(volatile int *)&words[7] = 1;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 100; i++)
        CHECK_EQ(list[i], i);
    CHECK_EQ(words[0], 100);
    CHECK_EQ(words[1], 0);
    CHECK_EQ(words[2], 101);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaFree(list));
    CHECK_CUDA(cudaFree(words));
}

/* Events make one stream wait for another, and tell the time. */
static void check_events()
{
    int *words = shared_array<int>(8);
    cudaStream_t first, second;
    cudaEvent_t start, middle, plain;
    float ms = -1;

    CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreate(&start));
    CHECK_CUDA(cudaEventCreate(&middle));
    CHECK_CUDA(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventQuery(start)); /* never recorded */
    CHECK_CUDA(cudaEventSynchronize(start));

    CHECK_CUDA(cudaEventRecord(start, first));
    hold<<<1, 1, 0, first>>>(&words[0]);
    stamp<<<1, 1, 0, first>>>(&words[2], &words[6], 0);
    CHECK_CUDA(cudaEventRecord(middle, first));
    CHECK_CUDA(cudaStreamWaitEvent(second, middle, 0));
    stamp<<<1, 1, 0, second>>>(&words[2], &words[6], 1);
    CHECK_EQ(cudaEventQuery(middle), cudaErrorNotReady);
    CHECK_EQ(cudaEventElapsedTime(&ms, start, middle), cudaErrorNotReady);
    pause_ms(20);
    CHECK_EQ(words[6], 0);
    *(volatile int *)&words[0] = 1;
    CHECK_CUDA(cudaStreamSynchronize(second));
    CHECK_EQ(words[2], 0);
    CHECK_EQ(words[3], 1);
    CHECK_CUDA(cudaEventElapsedTime(&ms, start, middle));
    CHECK(ms >= 15 && ms < 60000);
    CHECK_CUDA(cudaEventRecord(plain, first));
    CHECK_CUDA(cudaEventSynchronize(plain));
    CHECK_CUDA_FAILS(cudaEventElapsedTime(&ms, start, plain), cudaErrorInvalidResourceHandle);

    CHECK_CUDA(cudaEventDestroy(start));
    CHECK_CUDA(cudaEventDestroy(middle));
    CHECK_CUDA(cudaEventDestroy(plain));
    CHECK_CUDA(cudaStreamDestroy(first));
    CHECK_CUDA(cudaStreamDestroy(second));
    CHECK_CUDA(cudaFree(words));
}

/* The default stream waits for ordinary streams and they for it; others go their own way. */
static void check_default_stream()
{
    int *words = shared_array<int>(16);
    cudaStream_t ordinary, other;

    CHECK_CUDA(cudaStreamCreate(&ordinary));
    CHECK_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    hold<<<1, 1, 0, ordinary>>>(&words[0]);
    stamp<<<1, 1, 0, ordinary>>>(&words[4], &words[12], 0);
    stamp<<<1, 1>>>(&words[4], &words[12], 1);
    stamp<<<1, 1, 0, ordinary>>>(&words[4], &words[12], 2);
    stamp<<<1, 1, 0, other>>>(&words[4], &words[13], 3);
    CHECK_CUDA(cudaStreamSynchronize(other));
    CHECK_EQ(words[13], 1);
    CHECK_EQ(words[12], 0);
    CHECK_EQ(cudaStreamQuery(0), cudaErrorNotReady);
    *(volatile int *)&words[0] = 1;
    CHECK_CUDA(cudaStreamSynchronize(ordinary));
    CHECK_EQ(words[4], 0);
    CHECK_EQ(words[5], 1);
    CHECK_EQ(words[6], 2);

    /* A copy by the default stream waits for them too. */
    words[0] = 0;
    hold<<<1, 1, 0, ordinary>>>(&words[0]);
    stamp<<<1, 1, 0, ordinary>>>(&words[4], &words[12], 8 - 1);
    *(volatile int *)&words[0] = 1;
    int copied = -1;
    CHECK_CUDA(cudaMemcpy(&copied, &words[11], sizeof copied, cudaMemcpyDeviceToHost));
    CHECK_EQ(copied, 3);
    CHECK_CUDA(cudaStreamDestroy(ordinary));
    CHECK_CUDA(cudaStreamDestroy(other));
    CHECK_CUDA(cudaFree(words));
}

/* Many streams, destroyed while they work; and pageable memory that is reused at once. */
static void check_many()
{
    int *words = shared_array<int>(64), *gate = shared_array<int>(1);

    for (int i = 0; i < 32; i++) {
        cudaStream_t stream;
        int value = 100 + i;
        CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK_CUDA(cudaMemcpyAsync(&words[i], &value, sizeof value, cudaMemcpyHostToDevice, stream));
        value = 0;
        hold<<<1, 1, 0, stream>>>(gate);
        CHECK_CUDA(
            cudaMemcpyAsync(&words[32 + i], &words[i], sizeof(int), cudaMemcpyDeviceToDevice, stream));
        CHECK_CUDA(cudaStreamDestroy(stream));
    }
    *(volatile int *)gate = 1;
    CHECK_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        CHECK_EQ(words[i], 100 + i % 32);
    CHECK_CUDA(cudaFree(words));
    CHECK_CUDA(cudaFree(gate));
}

#ifndef __NVCC__ /* CUDA's own threads have names of its own */
/* A host function that a kernel's end starts has the name of the thread that submitted it, and the
 * threads that it starts, too. */
static char host_name[2][16];

static void *tell_name(void *name)
{
    CHECK_EQ(pthread_getname_np(pthread_self(), (char *)name, sizeof host_name[0]), 0);
    return nullptr;
}

static void tell_names(void *)
{
    pthread_t thread;

    tell_name(host_name[0]);
    CHECK_EQ(pthread_create(&thread, nullptr, tell_name, host_name[1]), 0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
}

static void *submit_named(void *gate)
{
    CHECK_EQ(pthread_setname_np(pthread_self(), "submits"), 0);
    hold<<<1, 1, 0, cudaStreamPerThread>>>((volatile int *)gate);
    CHECK_CUDA(cudaLaunchHostFunc(cudaStreamPerThread, tell_names, nullptr));
    *(volatile int *)gate = 1;
    CHECK_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    return nullptr;
}

static void check_names()
{
    int *gate = shared_array<int>(1);
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, nullptr, submit_named, gate), 0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
    CHECK_STR(host_name[0], "submits");
    CHECK_STR(host_name[1], "submits");
    CHECK_CUDA(cudaFree(gate));
}
#endif

static cudaError_t from_host_function[2];
static char many[1 << 20], *place;

static void calls_back(void *stream)
{
    from_host_function[0] = cudaStreamSynchronize(0);
    /* of more than is copied aside */
    from_host_function[1] =
        cudaMemcpyAsync(place, many, sizeof many, cudaMemcpyHostToDevice, (cudaStream_t)stream);
}

/* What a host function may not do is an error and no hang. */
static void check_misuse()
{
    cudaStream_t stream, wrong;

    CHECK_CUDA(cudaStreamCreate(&stream));
    CHECK_CUDA(cudaMalloc(&place, sizeof many));
    CHECK_CUDA(cudaLaunchHostFunc(stream, calls_back, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(from_host_function[0], cudaErrorNotPermitted);
    CHECK_EQ(from_host_function[1], cudaErrorNotPermitted);
    CHECK_CUDA(cudaFree(place));
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA_FAILS(cudaStreamCreateWithFlags(&wrong, 0xff), cudaErrorInvalidValue);
    CHECK_CUDA_FAILS(cudaEventRecord(nullptr, 0), cudaErrorInvalidResourceHandle);
}

/* A thread's own stream goes with it, and its work is done. */
static void *use_own(void *count)
{
    append<<<1, 1, 0, cudaStreamPerThread>>>((int *)count + 1, (int *)count, 5);
    return nullptr;
}

static void check_threads()
{
    enum { THREADS = 2000 };
#ifdef __NVCC__ /* CUDA keeps what it likes */
    const size_t most = (size_t)-1 / 2;
#else
    const size_t most = 100 * THREADS / 2;
#endif
    int *count = shared_array<int>(1 + THREADS);
    size_t before = 0;

    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (i == THREADS / 2) {
            CHECK_CUDA(cudaDeviceSynchronize());
            before = mallinfo2().uordblks;
        }
        CHECK_EQ(pthread_create(&thread, nullptr, use_own, count), 0);
        CHECK_EQ(pthread_join(thread, nullptr), 0);
        CHECK_CUDA(cudaDeviceSynchronize()); /* they are in no order among themselves */
    }
    CHECK_EQ(count[0], THREADS);
    CHECK(mallinfo2().uordblks < before + most); /* sanitizers say 0 */
    CHECK_CUDA(cudaFree(count));
}

/* One thread records an event again and again while others ask for it, wait for it and order their
 * streams by it. */
static bool events_end;

static void *use_event(void *event)
{
    const cudaEvent_t e = (cudaEvent_t)event;
    float ms = 0;
    cudaStream_t stream;

    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    while (!__atomic_load_n(&events_end, __ATOMIC_ACQUIRE)) {
        cudaError_t error = cudaEventQuery(e);
        CHECK(error == cudaSuccess || error == cudaErrorNotReady);
        error = cudaEventElapsedTime(&ms, e, e);
        CHECK(error == cudaSuccess || error == cudaErrorNotReady);
        CHECK_CUDA(cudaEventSynchronize(e));
        CHECK_CUDA(cudaStreamWaitEvent(stream, e, 0));
    }
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamDestroy(stream));
    return nullptr;
}

static void check_event_of_threads()
{
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    cudaEvent_t event;
    cudaStream_t stream;

    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreate(&event));
    CHECK_CUDA(cudaEventRecord(event, stream));
    for (pthread_t &t : thread)
        CHECK_EQ(pthread_create(&t, nullptr, use_event, event), 0);
    const time_t end = time(nullptr) + 2; /* a second at least */
    while (time(nullptr) < end) {
        CHECK_CUDA(cudaEventRecord(event, stream));
        sched_yield(); /* what was freed stays so for a moment */
    }
    __atomic_store_n(&events_end, true, __ATOMIC_RELEASE);
    for (pthread_t t : thread)
        CHECK_EQ(pthread_join(t, nullptr), 0);
    CHECK_CUDA(cudaEventDestroy(event));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

int main()
{
    mallopt(M_PERTURB, 0xa5); /* what was freed looks like nothing else */
#ifndef __NVCC__
    check_names();
#endif
    check_order();
    check_events();
    check_event_of_threads();
    check_default_stream();
    check_many();
    check_threads();
    check_misuse();
    return 0;
}
