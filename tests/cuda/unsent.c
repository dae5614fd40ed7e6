/* The word of a collective cannot be sent to another host, because the (simulated) GPU fails to copy it:
 * the collective fails at the PE that could not send it, and at the other one when that PE leaves. */
#include <dlfcn.h>

#include "gshmem.h"
#include "../check.h"

enum { VALUES = 16, ILLEGAL_ADDRESS = 700 };

static gshmem_status_t reduce(long *to, const long *from)
{
    return gshmem_reduce(GSHMEM_TEAM_WORLD, GSHMEM_TYPE_INT64, GSHMEM_OP_SUM, to, from, VALUES);
}

int main(void)
{
    void (*sim_fail)(const char *call, long nth, int result);
    void *driver;

    setenv("GSHMEM_ON_ERROR", "return", 1);
    CHECK_OK(gshmem_init());
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    CHECK(driver);
    *(void **)&sim_fail = dlsym(driver, "sim_fail");
    CHECK(sim_fail);
    long *to = gshmem_calloc(VALUES, sizeof *to), *from = gshmem_calloc(VALUES, sizeof *from);
    uint64_t *flag = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST);
    CHECK(to && from && flag);
    *flag = 0;
    CHECK_OK(reduce(to, from));
    CHECK_OK(gshmem_barrier_all());
    if (gshmem_my_pe() == 0) {
        sim_fail("cuMemcpyAsync", 1, ILLEGAL_ADDRESS);
        CHECK_EQ(reduce(to, from), GSHMEM_ERR_DEVICE);
        sim_fail("", 0, 0);
        /* and so do later ones, which would wait for what was not sent */
        CHECK_EQ(reduce(to, from), GSHMEM_ERR_DEVICE);
        CHECK_EQ(gshmem_quiet(), GSHMEM_ERR_DEVICE); /* of the word's put */
        CHECK_OK(gshmem_uint64_p(flag, 1, 1));
    } else {
        /* only now: the next copy of PE 0's GPU is that of its word */
        CHECK_OK(gshmem_uint64_wait_until(flag, GSHMEM_CMP_EQ, 1));
        CHECK_EQ(reduce(to, from), GSHMEM_ERR_PEER_DEAD);
    }
    dlclose(driver);
    return gshmem_finalize();
}
