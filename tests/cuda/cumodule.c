/* Modules that the program has the (simulated) driver load: their kernels find the job from init
 * to finalize, or to the end of the job; what is no such module is told. The module is the PTX
 * of the library's own kernel, a second time, which the program launches with requests of its
 * own.
 *
 *     cumodule kernels.ptx [old] */
#include "gshmem.h"
#include "gshmem/device/state.h"
#include "device/request.h"
#include "gpu.h"
#include "image.h"

enum { LONGS = 3000, THREADS = 96 };

static struct gshmem_device_state *state_of(cuda_module module)
{
    cuda_address at;
    size_t bytes;

    CHECK_EQ(driver.module_global(&at, &bytes, module, "gshmem_device_here"), CUDA_OK);
    CHECK_EQ(bytes, sizeof(struct gshmem_device_state));
    return (struct gshmem_device_state *)(uintptr_t)at; /* the simulation has it in host memory */
}

/* The driver copies the arguments: the next call has its own in their place. */
static void launch(cuda_function perform, cuda_stream stream, struct device_request r)
{
    void *arguments[] = {&r};

    CHECK_EQ(driver.launch(perform, 1, 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL), CUDA_OK);
}

/* All threads of a block put to the right, and meet the other PEs' blocks. */
static void kernels_run(cuda_module module)
{
    const int me = gshmem_my_pe(), n = gshmem_n_pes(), left = (me + n - 1) % n;
    long *heap = gshmem_calloc(2 * LONGS, sizeof *heap), mine[LONGS];
    cuda_stream stream = new_stream();
    cuda_function perform, none;

    CHECK(heap);
    CHECK_EQ(driver.module_function(&none, module, "gshmem_performs"), CUDA_NOT_FOUND);
    CHECK_EQ(driver.module_function(&perform, module, "gshmem_perform"), CUDA_OK);
    for (int i = 0; i < LONGS; i++)
        mine[i] = me * LONGS + i;
    CHECK_OK(gshmem_putmem(heap, mine, sizeof mine, me));
    launch(perform, stream,
           (struct device_request){.call = DEVICE_PUT,
                                   .dest = (uintptr_t)(heap + LONGS),
                                   .source = (uintptr_t)heap,
                                   .n = sizeof mine,
                                   .pe = (me + 1) % n});
    launch(perform, stream,
           (struct device_request){.call = DEVICE_BARRIER, .team = GSHMEM_TEAM_WORLD});
    CHECK_EQ(driver.stream_wait(stream), CUDA_OK);
    CHECK_OK(gshmem_getmem(mine, heap + LONGS, sizeof mine, me));
    for (int i = 0; i < LONGS; i++)
        CHECK_EQ(mine[i], left * LONGS + i);
    end_stream(stream);
    CHECK_OK(gshmem_free(heap));
}

int main(int argc, char **argv)
{
    cuda_module module;
    int none;

    CHECK(argc > 1);
    char *image = read_image(argv[1]);
    CHECK_FAILS(gshmem_cumodule_init(&none), GSHMEM_ERR_STATE, "gshmem_cumodule_init");
    CHECK_OK(gshmem_init());
    open_gpu();
    CHECK_EQ(driver.module_load(&module, image), CUDA_OK);
    memset(image, 0xa5, 64); /* it is no longer needed */
    free(image);
    const struct gshmem_device_state *state = state_of(module);

    CHECK_FAILS(gshmem_cumodule_init(&none), GSHMEM_ERR_DEVICE, "gshmem_device_here");
    CHECK_FAILS(gshmem_cumodule_finalize(module), GSHMEM_ERR_ARGUMENT, "has not been made known");
    CHECK_EQ(state->ctx.n_pes, 0);
    CHECK_OK(gshmem_cumodule_init(module));
    CHECK_FAILS(gshmem_cumodule_init(module), GSHMEM_ERR_STATE, "already");
    CHECK_EQ(state->ctx.n_pes, gshmem_n_pes());
    CHECK_EQ(state->ctx.my_pe, gshmem_my_pe());
    kernels_run(module);
    CHECK_OK(gshmem_cumodule_finalize(module));
    CHECK_EQ(state->ctx.n_pes, 0);

    if (argc > 2 && strcmp(argv[2], "old") == 0) { /* a driver for CUDA 11.4 */
        CHECK_FAILS(gshmem_culibrary_init(module), GSHMEM_ERR_UNSUPPORTED, "knows none");
    } else {
        CHECK_OK(gshmem_culibrary_init(module));
        CHECK_EQ(state->ctx.n_pes, gshmem_n_pes());
    }
    CHECK_OK(gshmem_finalize());
    CHECK_EQ(state->ctx.n_pes, 0);
    CHECK_EQ(driver.module_unload(module), CUDA_OK);
    CHECK_EQ(driver.primary_release(gpu), CUDA_OK);
    cuda_driver_close(&driver);
    return 0;
}
