/* Requests to the library's kernel whose call, type or operation is in no table: each is refused, and
 * the object that it names is left alone. The CPU checks all of them before; here nobody has.
 *
 * The kernel is the stand-in for it in the simulation, which is called without a job. */
#include <dlfcn.h>
#include <stdbool.h>

#include "../check.h"
#include "device/request.h"
#include "gshmem.h"

typedef void perform_fn(const struct device_request *);

static perform_fn *perform;

static void refused(struct device_request r, const char *what, int number)
{
    uint64_t object[2] = {5, 6};
    struct device_answer answer = {.outcome = GSHMEM_OK};

    r.dest = r.source = (uintptr_t)object;
    r.n = r.n ? r.n : 1;
    r.value[0] = r.value[1] = 5;
    r.answer = (uintptr_t)&answer;
    perform(&r);
    if (answer.outcome != GSHMEM_ERR_ARGUMENT || object[0] != 5 || object[1] != 6)
        CHECK_FAIL("%s %d: %s, the object is %d %d", what, number,
                   gshmem_status_name((gshmem_status_t)answer.outcome), (int)object[0], (int)object[1]);
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

int main(void)
{
    void *simulation = dlopen("libcuda.so.1", RTLD_NOW);

    if (!simulation)
        CHECK_FAIL("%s", dlerror());
    *(void **)&perform = dlsym(simulation, "sim_perform");
    CHECK(perform);
    for (int type = -40; type < 40; type++) {
        if (!has_atomics(type))
            refused((struct device_request){.call = DEVICE_UPDATE, .type = type, .op = GSHMEM_AMO_ADD},
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
    return 0;
}
