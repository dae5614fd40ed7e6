/* Kernels on the simulated GPU: all blocks and threads run, blocks meet at barriers and in
 * cooperative launches, on streams, in graphs; each module has variables of its own; what fails
 * is told. The PTX is written here. */
#include <dlfcn.h>

#include "gshmem.h"
#include "gpu.h"

enum { BLOCKS = 40, FEW = 10, THREADS = 96, LAUNCH_FAILED = 719, TOO_LARGE = 720 };

/* reverse: each thread writes to shared memory what another reads behind a barrier:
 * out[block][i] = in[block][last - i], + first, a variable of the module, which the last block
 * of all raises by one. meet: blocks count up, and wait until all have. Only a cooperative
 * launch is sure to end. */
static const char ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 first = 7;\n"
    ".visible .global .align 4 .u32 ended;\n"
    ".visible .entry reverse(.param .u64 out, .param .u64 in)\n{\n"
    ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %d<8>;\n"
    ".shared .align 4 .b8 kept[384];\n"
    "ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in];\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;\n"
    "mad.lo.s32 %r4, %r3, %r2, %r1; mul.wide.u32 %d3, %r4, 4;\n"
    "add.s64 %d4, %d2, %d3; ld.global.u32 %r5, [%d4];\n"
    "shl.b32 %r6, %r1, 2; mov.u32 %r7, kept; add.s32 %r8, %r7, %r6; st.shared.u32 [%r8], %r5;\n"
    "bar.sync 0;\n"
    "sub.s32 %r9, %r2, %r1; shl.b32 %r9, %r9, 2; add.s32 %r9, %r9, -4; add.s32 %r9, %r7, %r9;\n"
    "ld.shared.u32 %r5, [%r9]; ld.global.u32 %r6, [first]; add.s32 %r5, %r5, %r6;\n"
    "add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r5;\n"
    "bar.sync 0;\n"
    "setp.ne.s32 %p, %r1, 0; @%p bra END;\n"
    "atom.global.add.u32 %r10, [ended], 1;\n"
    "mov.u32 %r11, %nctaid.x; add.s32 %r11, %r11, -1; setp.ne.s32 %p, %r10, %r11; @%p bra END;\n"
    "add.s32 %r6, %r6, 1; st.global.u32 [first], %r6; mov.u32 %r6, 0; st.global.u32 [ended], %r6;\n"
    "END: ret;\n}\n"
    ".visible .entry meet(.param .u64 count)\n{\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [count]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %tid.x;\n"
    "setp.ne.s32 %p, %r2, 0; @%p bra END;\n"
    "atom.global.add.u32 %r3, [%d1], 1;\n"
    "WAIT: ld.acquire.gpu.global.u32 %r4, [%d1]; setp.lt.u32 %p, %r4, %r1; @%p bra WAIT;\n"
    "END: ret;\n}\n"
    ".visible .entry fail()\n{\ntrap;\nret;\n}\n";

static cuda_function function_of(cuda_module module, const char *name)
{
    cuda_function found;

    CHECK_EQ(driver.module_function(&found, module, name), CUDA_OK);
    return found;
}

static unsigned value_of(cuda_module module, const char *name)
{
    cuda_address at;
    size_t bytes;
    unsigned value;

    CHECK_EQ(driver.module_global(&at, &bytes, module, name), CUDA_OK);
    CHECK_EQ(bytes, sizeof value);
    CHECK_EQ(driver.copy_async((uintptr_t)&value, at, sizeof value, NULL), CUDA_OK);
    CHECK_EQ(driver.stream_wait(NULL), CUDA_OK);
    return value;
}

/* The memory of a grid: what it reads is behind what it writes. */
static cuda_address new_memory(void)
{
    unsigned values[BLOCKS * THREADS];
    cuda_address at;

    for (unsigned i = 0; i < BLOCKS * THREADS; i++)
        values[i] = 3 * i;
    CHECK_EQ(driver.allocate(&at, 2 * sizeof values), CUDA_OK);
    CHECK_EQ(driver.copy_async(at + sizeof values, (uintptr_t)values, sizeof values, NULL),
             CUDA_OK);
    CHECK_EQ(driver.stream_wait(NULL), CUDA_OK);
    return at;
}

static void check_reversed(cuda_address at, unsigned first)
{
    unsigned values[BLOCKS * THREADS];

    CHECK_EQ(driver.copy_async((uintptr_t)values, at, sizeof values, NULL), CUDA_OK);
    CHECK_EQ(driver.stream_wait(NULL), CUDA_OK);
    for (unsigned i = 0; i < BLOCKS * THREADS; i++)
        CHECK_EQ(values[i], 3 * (i / THREADS * THREADS + THREADS - 1 - i % THREADS) + first);
}

static void reverse(cuda_module module, cuda_address at, cuda_stream stream)
{
    cuda_address in = at + BLOCKS * THREADS * sizeof(unsigned);
    void *arguments[] = {&at, &in};

    CHECK_EQ(driver.launch(function_of(module, "reverse"), BLOCKS, 1, 1, THREADS, 1, 1, 0, stream,
                           arguments, NULL),
             CUDA_OK);
}

/* Two of the same text; one of them stays, for what follows. */
static cuda_module modules(void)
{
    cuda_address at = new_memory();
    cuda_stream stream = new_stream();
    cuda_module one, two;

    CHECK_EQ(driver.module_load(&one, ptx), CUDA_OK);
    CHECK_EQ(driver.module_load(&two, ptx), CUDA_OK);
    for (unsigned i = 0; i < 2; i++) {
        reverse(one, at, stream);
        finish(stream);
        check_reversed(at, 7 + i);
    }
    CHECK_EQ(value_of(one, "first"), 9);
    CHECK_EQ(value_of(two, "first"), 7);
    CHECK_EQ(driver.module_unload(one), CUDA_OK);
    CHECK_EQ(driver.module_load(&one, ptx), CUDA_OK);
    CHECK_EQ(value_of(one, "first"), 7);
    CHECK_EQ(driver.module_unload(one), CUDA_OK);
    reverse(two, at, stream);
    finish(stream);
    check_reversed(at, 7);
    end_stream(stream);
    CHECK_EQ(driver.free(at), CUDA_OK);
    return two;
}

#define LOOK_UP(call)                                                                              \
    do {                                                                                           \
        *(void **)&(call) = dlsym(driver.library, #call);                                          \
        CHECK(call);                                                                               \
    } while (0)

/* A graph that is launched twice, with memory and arguments that were its own when it was
 * captured. */
static void graph(cuda_module module)
{
    cuda_result (*cuStreamBeginCapture_v2)(cuda_stream, int);
    cuda_result (*cuStreamEndCapture)(cuda_stream, void **);
    cuda_result (*cuGraphInstantiateWithFlags)(void **, void *, unsigned long long);
    cuda_result (*cuGraphLaunch)(void *, cuda_stream);
    cuda_result (*cuGraphExecDestroy)(void *), (*cuGraphDestroy)(void *);
    void *captured, *exec;

    LOOK_UP(cuStreamBeginCapture_v2);
    LOOK_UP(cuStreamEndCapture);
    LOOK_UP(cuGraphInstantiateWithFlags);
    LOOK_UP(cuGraphLaunch);
    LOOK_UP(cuGraphExecDestroy);
    LOOK_UP(cuGraphDestroy);
    cuda_address at = new_memory();
    cuda_stream stream = new_stream();
    const unsigned first = value_of(module, "first");

    CHECK_EQ(cuStreamBeginCapture_v2(stream, 0), CUDA_OK);
    reverse(module, at, stream);
    CHECK_EQ(cuStreamEndCapture(stream, &captured), CUDA_OK);
    CHECK_EQ(cuGraphInstantiateWithFlags(&exec, captured, 0), CUDA_OK);
    CHECK_EQ(cuGraphDestroy(captured), CUDA_OK);
    CHECK_EQ(value_of(module, "first"), first); /* nothing has run */
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_OK);
        finish(stream);
        check_reversed(at, first + i);
    }
    CHECK_EQ(cuGraphExecDestroy(exec), CUDA_OK);
    end_stream(stream);
    CHECK_EQ(driver.free(at), CUDA_OK);
}

/* cuLaunchKernelEx: attributes that are advice, and one that is refused. The library does not call
 * it. */
static void by_attributes(cuda_module module)
{
    struct {
        int id, pad, value[16];
    } attribute[] = {{.id = 2, .value = {1}}, {.id = 4, .value = {1, 1, 1}}, {.id = 6, .value = {1}},
                     {.id = 8, .value = {-1}}, {.id = 7}};
    struct {
        unsigned size[6], shared;
        cuda_stream stream;
        void *attribute;
        unsigned attributes;
    } config = {.size = {FEW, 1, 1, 32, 1, 1}, .attribute = attribute, .attributes = 4};
    cuda_result (*cuLaunchKernelEx)(const void *, cuda_function, void **, void **);
    cuda_address at = new_memory();
    void *arguments[] = {&at};
    unsigned count = 0;

    LOOK_UP(cuLaunchKernelEx);
    config.stream = new_stream();
    CHECK_EQ(driver.fill_async(at, 0, sizeof count, config.stream), CUDA_OK);
    CHECK_EQ(cuLaunchKernelEx(&config, function_of(module, "meet"), arguments, NULL), CUDA_OK);
    CHECK_EQ(driver.copy_async((uintptr_t)&count, at, sizeof count, config.stream), CUDA_OK);
    finish(config.stream);
    CHECK_EQ(count, FEW);
    config.attributes = 5;
    CHECK_EQ(cuLaunchKernelEx(&config, function_of(module, "meet"), arguments, NULL),
             CUDA_NOT_SUPPORTED);
    attribute[1].value[0] = 2;
    config.attributes = 2;
    CHECK_EQ(cuLaunchKernelEx(&config, function_of(module, "meet"), arguments, NULL),
             CUDA_NOT_SUPPORTED);
    end_stream(config.stream);
    CHECK_EQ(driver.free(at), CUDA_OK);
}

static void cooperative(cuda_module module)
{
    cuda_result (*cuLaunchCooperativeKernel)(cuda_function, unsigned, unsigned, unsigned, unsigned,
                                             unsigned, unsigned, unsigned, cuda_stream, void **);
    cuda_address at = new_memory();
    cuda_stream stream = new_stream();
    void *arguments[] = {&at};
    unsigned count;

    LOOK_UP(cuLaunchCooperativeKernel);
    CHECK_EQ(driver.fill_async(at, 0, sizeof count, stream), CUDA_OK);
    CHECK_EQ(cuLaunchCooperativeKernel(function_of(module, "meet"), FEW, 1, 1, THREADS, 1, 1, 0,
                                       stream, arguments),
             CUDA_OK);
    CHECK_EQ(driver.copy_async((uintptr_t)&count, at, sizeof count, stream), CUDA_OK);
    finish(stream);
    CHECK_EQ(count, FEW);
    CHECK_EQ(cuLaunchCooperativeKernel(function_of(module, "meet"), 100000, 1, 1, THREADS, 1, 1, 0,
                                       stream, arguments),
             CUDA_OK); /* here the stream tells; a driver refuses it at once */
    CHECK_EQ(driver.stream_wait(stream), TOO_LARGE);
    end_stream(stream);
    CHECK_EQ(driver.free(at), CUDA_OK);
}

/* What was asked for wrongly, and a kernel that fails, which is told by whoever waits for it. */
static void refusals(cuda_module module)
{
    cuda_stream stream = new_stream();
    cuda_context other;
    cuda_module none;

    for (unsigned n = 0; n <= 1025; n += 1025)
        CHECK_EQ(
            driver.launch(function_of(module, "fail"), 1, 1, 1, n, 1, 1, 0, stream, NULL, NULL),
            CUDA_INVALID_VALUE);
    CHECK(driver.module_load(&none,
                             ".version 7.5\n.target sm_75\n.visible .entry k() { frobnicate; }") !=
          CUDA_OK);
    CHECK(driver.module_load(&none, "no PTX") != CUDA_OK);
    CHECK_EQ(driver.primary_retain(&other, 1 - gpu), CUDA_OK);
    CHECK_EQ(driver.context_push(other), CUDA_OK);
    CHECK_EQ(driver.launch(function_of(module, "fail"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
             CUDA_INVALID_CONTEXT); /* a module is of one GPU */
    CHECK_EQ(driver.context_pop(&other), CUDA_OK);
    CHECK_EQ(driver.primary_release(1 - gpu), CUDA_OK);

    CHECK_EQ(driver.launch(function_of(module, "fail"), 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL),
             CUDA_OK);
    CHECK_EQ(driver.stream_wait(stream), LAUNCH_FAILED);
    end_stream(stream);
}

int main(void)
{
    char why[200];

    CHECK(cuda_driver_open(&driver, why, sizeof why));
    CHECK_EQ(driver.init(0), CUDA_OK);
    CHECK_EQ(driver.primary_retain(&context, gpu), CUDA_OK);
    CHECK_EQ(driver.context_set(context), CUDA_OK);
    cuda_module module = modules();
    graph(module);
    cooperative(module);
    by_attributes(module);
    refusals(module);
    CHECK_EQ(driver.module_unload(module), CUDA_OK);
    close_gpu();
    return 0;
}
