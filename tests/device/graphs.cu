/* Graphs captured from streams: what is noted is not done, is done as often as it is launched, in
 * the order that streams and events gave it; and what cannot be captured is said. */
#include "device.h"

__global__ void add(int *to, int what)
{
    atomicAdd(to, what);
}

__global__ void times(int *to, int what)
{
    *to *= what;
}

static void add_hundred(void *argument)
{
    *(int *)argument += 100;
}

static cudaStream_t new_stream()
{
    cudaStream_t stream;

    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaGraphExec_t end(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_CUDA(cudaGraphDestroy(graph));
    return exec;
}

/* ((x + 1) * 3 + 100), copied to y; launched again and again. */
static void check_one_stream()
{
    int *x = shared_array<int>(2), *y = x + 1, expected = 0;
    cudaStream_t stream = new_stream();

    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    enum cudaStreamCaptureStatus status;
    CHECK_CUDA(cudaStreamIsCapturing(stream, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusActive);
    add<<<1, 1, 0, stream>>>(x, 1);
    times<<<1, 1, 0, stream>>>(x, 3);
    CHECK_CUDA(cudaLaunchHostFunc(stream, add_hundred, x));
    CHECK_CUDA(cudaMemsetAsync(y, 0, sizeof *y, stream));
    CHECK_CUDA(cudaMemcpyAsync(y, x, sizeof *y, cudaMemcpyDefault, stream));
    cudaGraphExec_t exec = end(stream);
    CHECK_CUDA(cudaStreamIsCapturing(stream, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusNone);
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(x[0], 0); /* nothing was done */
    for (int i = 0; i < 4; i++) {
        CHECK_CUDA(cudaGraphLaunch(exec, stream));
        if (i == 1)
            CHECK_CUDA(cudaStreamSynchronize(stream));
        expected = (expected + 1) * 3 + 100;
    }
    add<<<1, 1, 0, stream>>>(x, 7); /* after all of it */
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_EQ(x[0], expected + 7);
    CHECK_EQ(y[0], expected);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaFree(x));
}

__global__ void wait_for(volatile int *gate)
{
    while (*gate == 0)
        __nanosleep(1000);
}

/* Takes its time, so that who does not wait for it sees it undone. */
__global__ void set_late(volatile int *to, int what)
{
    __nanosleep(2000000);
    *to = what;
}

/* Two branches that run beside each other, one waiting for the other; then what needs both. */
static void check_fork_and_join()
{
    int *x = shared_array<int>(4), *gate = x + 3;
    cudaStream_t one = new_stream(), two = new_stream();
    cudaEvent_t fork, join;

    CHECK_CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK_CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    CHECK_CUDA(cudaMemsetAsync(x, 0, 4 * sizeof *x, one));
    set_late<<<1, 1, 0, one>>>(x + 1, 5);
    CHECK_CUDA(cudaEventRecord(fork, one));
    CHECK_CUDA(cudaStreamWaitEvent(two, fork, 0));
    wait_for<<<1, 1, 0, one>>>(gate);
    add<<<1, 1, 0, two>>>(x + 1, 2);
    add<<<1, 1, 0, two>>>(gate, 1);
    times<<<1, 1, 0, two>>>(x + 1, 2);
    set_late<<<1, 1, 0, two>>>(x, 9);
    CHECK_CUDA(cudaEventRecord(join, two));
    CHECK_CUDA(cudaStreamWaitEvent(one, join, 0));
    CHECK_EQ(cudaEventQuery(join), cudaErrorCapturedEvent);
    (void)cudaGetLastError();
    times<<<1, 1, 0, one>>>(x, 2);
    CHECK_CUDA(cudaMemcpyAsync(x + 2, x + 1, sizeof *x, cudaMemcpyDefault, one));
    cudaGraphExec_t exec = end(one);
    for (int i = 0; i < 3; i++) {
        CHECK_CUDA(cudaGraphLaunch(exec, one));
        CHECK_CUDA(cudaStreamSynchronize(one));
        CHECK_EQ(x[0], 18);
        CHECK_EQ(x[2], 14);
    }
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaEventDestroy(fork));
    CHECK_CUDA(cudaEventDestroy(join));
    CHECK_CUDA(cudaStreamDestroy(one));
    CHECK_CUDA(cudaStreamDestroy(two));
    CHECK_CUDA(cudaFree(x));
}

/* Each ends the capture of `stream`, by which error. */
static cudaError_t wait_in_it(cudaStream_t stream, cudaStream_t)
{
    return cudaStreamSynchronize(stream);
}

static cudaError_t ask_it(cudaStream_t stream, cudaStream_t)
{
    return cudaStreamQuery(stream);
}

static cudaError_t wait_from_outside(cudaStream_t stream, cudaStream_t other)
{
    cudaEvent_t event;

    CHECK_CUDA(cudaEventCreate(&event));
    CHECK_CUDA(cudaEventRecord(event, other));
    cudaError_t error = cudaStreamWaitEvent(stream, event, 0);
    CHECK_CUDA(cudaEventDestroy(event));
    return error;
}

static cudaError_t merge(cudaStream_t stream, cudaStream_t other)
{
    cudaEvent_t event;
    cudaGraph_t graph;

    CHECK_CUDA(cudaEventCreate(&event));
    CHECK_CUDA(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    CHECK_CUDA(cudaEventRecord(event, other));
    cudaError_t error = cudaStreamWaitEvent(stream, event, 0);
    CHECK_CUDA(cudaStreamEndCapture(other, &graph));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaEventDestroy(event));
    return error;
}

static void check_refused(cudaError_t (*mistake)(cudaStream_t, cudaStream_t), cudaError_t expected)
{
    cudaStream_t stream = new_stream(), other = new_stream();
    cudaGraph_t graph = nullptr;

    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK_EQ(mistake(stream, other), expected);
    (void)cudaGetLastError();
    CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    (void)cudaGetLastError();
    CHECK(graph == nullptr);
    CHECK_CUDA(cudaStreamSynchronize(stream)); /* it is a stream as before */
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaStreamDestroy(other));
}

/* A branch that never comes back; and ends that are none. */
static void check_ends()
{
    int *x = shared_array<int>(1);
    cudaStream_t one = new_stream(), two = new_stream();
    cudaEvent_t fork;
    cudaGraph_t graph;

    CHECK_CUDA(cudaEventCreate(&fork));
    CHECK_CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
    CHECK_EQ(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState);
    CHECK_CUDA(cudaEventRecord(fork, one));
    CHECK_CUDA(cudaStreamWaitEvent(two, fork, 0));
    add<<<1, 1, 0, two>>>(x, 1);
    CHECK_EQ(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
    CHECK_EQ(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
    CHECK_EQ(cudaStreamEndCapture(one, &graph), cudaErrorIllegalState);
    CHECK_EQ(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed),
             cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(x[0], 0);
    CHECK_CUDA(cudaEventDestroy(fork));
    CHECK_CUDA(cudaStreamDestroy(one));
    CHECK_CUDA(cudaStreamDestroy(two));
    CHECK_CUDA(cudaFree(x));
}

/* A stream that is destroyed while it is captured takes the capture with it. */
static void check_destroyed()
{
    int *x = shared_array<int>(1);
    cudaStream_t stream = new_stream();

    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<1, 1, 0, stream>>>(x, 1);
    CHECK_CUDA(cudaStreamDestroy(stream));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_EQ(x[0], 0);
    CHECK_CUDA(cudaFree(x));
}

/* Nothing captured is fine too. */
static void check_empty()
{
    cudaStream_t stream = new_stream();

    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaGraphExec_t exec = end(stream);
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaGraphExecDestroy(exec));
    CHECK_CUDA(cudaStreamDestroy(stream));
}

int main()
{
    check_one_stream();
    check_fork_and_join();
    check_refused(wait_in_it, cudaErrorStreamCaptureUnsupported);
    check_refused(ask_it, cudaErrorStreamCaptureUnsupported);
    check_refused(wait_from_outside, cudaErrorStreamCaptureIsolation);
    check_refused(merge, cudaErrorStreamCaptureMerge);
    check_ends();
    check_destroyed();
    check_empty();
    return 0;
}
