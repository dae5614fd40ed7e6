/* Requests to the library's kernel whose call, type or operation is in no table: each is
 * refused, and the object that it names is left alone. The CPU checks all of them before; here
 * nobody has.
 *
 * The test launches the kernel by the driver, without a job.
 *
 *     requests kernels.ptx */
#include <stdbool.h>
#include <stdlib.h>

#include "gshmem.h"
#include "device/request.h"
#include "gpu.h"
#include "image.h"

static cuda_function perform;
static cuda_stream stream;
static struct place {
    uint64_t object[2];
    struct device_answer answer;
} * place; /* pinned: both see it */

static void refused(struct device_request r, const char *what, int number)
{
    void *arguments[] = {&r};

    *place = (struct place){.object = {5, 6}, .answer = {.outcome = GSHMEM_OK}};
    r.dest = r.source = (uintptr_t)place->object;
    r.n = r.n ? r.n : 1;
    r.value[0] = r.value[1] = 5;
    r.answer = (uintptr_t)&place->answer;
    CHECK_EQ(driver.launch(perform, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL), CUDA_OK);
    CHECK_EQ(driver.stream_wait(stream), CUDA_OK);
    if (place->answer.outcome != GSHMEM_ERR_ARGUMENT || place->object[0] != 5 ||
        place->object[1] != 6)
        CHECK_FAIL("%s %d: %s, the object is %d %d", what, number,
                   gshmem_status_name((gshmem_status_t)place->answer.outcome),
                   (int)place->object[0], (int)place->object[1]);
}

static bool has_atomics(int type)
{
    return type == GSHMEM_TYPE_INT32 || type == GSHMEM_TYPE_UINT32 || type == GSHMEM_TYPE_INT64 ||
           type == GSHMEM_TYPE_UINT64 || type == GSHMEM_TYPE_FLOAT || type == GSHMEM_TYPE_DOUBLE;
}

static bool has_waits(int type)
{
    return type == GSHMEM_TYPE_INT16 || type == GSHMEM_TYPE_UINT16 || type == GSHMEM_TYPE_INT32 ||
           type == GSHMEM_TYPE_UINT32 || type == GSHMEM_TYPE_INT64 || type == GSHMEM_TYPE_UINT64;
}

static void try_all(void)
{
    for (int type = -40; type < 40; type++) {
        if (!has_atomics(type))
            refused(
                (struct device_request){.call = DEVICE_UPDATE, .type = type, .op = GSHMEM_AMO_ADD},
                "an update of type", type);
        if (has_waits(type))
            continue;
        refused((struct device_request){.call = DEVICE_WAIT_ONE, .type = type, .op = GSHMEM_CMP_EQ},
                "a wait for a variable of type", type);
        refused((struct device_request){.call = DEVICE_WAIT_ALL, .type = type, .op = GSHMEM_CMP_EQ},
                "a wait for variables of type", type);
    }
    for (int n = 3; n < 40; n++) {
        if (n != 4 && n != 8 && n != 16)
            refused((struct device_request){.call = DEVICE_P, .n = (uint64_t)n}, "p of bytes", n);
    }
    for (uint32_t call = DEVICE_CALLS; call < DEVICE_CALLS + 40; call++)
        refused((struct device_request){.call = call}, "call", (int)call);
}

int main(int argc, char **argv)
{
    char why[200];
    cuda_module module;

    CHECK_EQ(argc, 2);
    char *image = read_image(argv[1]);
    CHECK(cuda_driver_open(&driver, why, sizeof why));
    CHECK_EQ(driver.init(0), CUDA_OK);
    CHECK_EQ(driver.primary_retain(&context, 0), CUDA_OK);
    CHECK_EQ(driver.context_set(context), CUDA_OK);
    CHECK_EQ(driver.module_load(&module, image), CUDA_OK);
    CHECK_EQ(driver.module_function(&perform, module, "gshmem_perform"), CUDA_OK);
    CHECK_EQ(driver.stream_create(&stream, CUDA_STREAM_NON_BLOCKING), CUDA_OK);
    CHECK_EQ(driver.host_allocate((void **)&place, sizeof *place, CUDA_HOST_DEVICE_MAP), CUDA_OK);
    try_all();
    CHECK_EQ(driver.host_free(place), CUDA_OK);
    CHECK_EQ(driver.stream_destroy(stream), CUDA_OK);
    CHECK_EQ(driver.module_unload(module), CUDA_OK);
    close_gpu();
    free(image);
    return 0;
}
