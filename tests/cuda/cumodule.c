/* Modules that the program has the (simulated) driver load: their kernels find the job from init to
 * finalize, or to the end of the job; what is no such module is told. */
#include "gshmem.h"
#include "gshmem/device/state.h"
#include "gpu.h"

static struct gshmem_device_state *state_of(cuda_module module)
{
    cuda_address at;
    size_t bytes;

    CHECK_EQ(driver.module_global(&at, &bytes, module, "gshmem_device_here"), CUDA_OK);
    CHECK_EQ(bytes, sizeof(struct gshmem_device_state));
    return (struct gshmem_device_state *)(uintptr_t)at; /* the simulation has it in host memory */
}

int main(int argc, char **argv)
{
    static const unsigned char fatbin[] = {0x50, 0xed, 0x55,
                                           0xba}; /* all that the simulation looks at */
    cuda_module module;
    int none;

    CHECK_FAILS(gshmem_cumodule_init(&none), GSHMEM_ERR_STATE, "gshmem_cumodule_init");
    CHECK_OK(gshmem_init());
    open_gpu();
    CHECK_EQ(driver.module_load(&module, fatbin), CUDA_OK);
    const struct gshmem_device_state *state = state_of(module);

    CHECK_FAILS(gshmem_cumodule_init(&none), GSHMEM_ERR_DEVICE, "gshmem_device_here");
    CHECK_FAILS(gshmem_cumodule_finalize(module), GSHMEM_ERR_ARGUMENT, "has not been made known");
    CHECK_OK(gshmem_cumodule_init(module));
    CHECK_FAILS(gshmem_cumodule_init(module), GSHMEM_ERR_STATE, "already");
    CHECK_EQ(state->ctx.n_pes, gshmem_n_pes());
    CHECK_EQ(state->ctx.my_pe, gshmem_my_pe());
    CHECK_OK(gshmem_cumodule_finalize(module));
    CHECK_EQ(state->ctx.n_pes, 0);

    if (argc > 1 && strcmp(argv[1], "old") == 0) { /* a driver for CUDA 11.4 */
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
