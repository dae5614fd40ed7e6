/* A copy of the (simulated) GPU fails in the middle of a transfer between hosts: the one operation fails, its
 * signal is not set, and what comes after it goes well. */
#include <dlfcn.h>

#include "gshmem.h"
#include "../check.h"

enum { BYTES = 3 << 20, ILLEGAL_ADDRESS = 700 };

static void (*sim_fail)(const char *call, long nth, int result);
static int me;
static char *gpu, *own;
static uint64_t *flag;
static uint64_t rounds; /* the flag of PE 1 */

/* PE `where` has the nth of those calls from now on fail. */
static void plan(int where, const char *call, long nth)
{
    CHECK_OK(gshmem_barrier_all());
    if (me == where)
        sim_fail(call, nth, ILLEGAL_ADDRESS);
    CHECK_OK(gshmem_barrier_all());
}

/* After PE 0 has met with the fault: all is as if it had not been, but for that one operation. */
static void go_on(void)
{
    char byte = (char)(rounds + 1), found = 0;

    CHECK_OK(gshmem_barrier_all());
    sim_fail("", 0, 0);
    CHECK_EQ(*flag, me ? rounds : 0);
    CHECK_OK(gshmem_barrier_all());
    rounds++;
    if (me == 0) {
        CHECK_OK(gshmem_putmem(own + BYTES - 1, &byte, 1, 0));
        CHECK_OK(gshmem_putmem_signal(gpu, own, BYTES, flag, rounds, GSHMEM_SIGNAL_SET, 1));
        CHECK_OK(gshmem_quiet());
    } else {
        CHECK_OK(gshmem_uint64_wait_until(flag, GSHMEM_CMP_EQ, rounds));
        CHECK_OK(gshmem_getmem(&found, gpu + BYTES - 1, 1, 1));
        CHECK_EQ(found, byte);
    }
    CHECK_OK(gshmem_barrier_all());
}

static void check_failure(gshmem_status_t status, const char *call)
{
    const char *line = "";

    if (!status) { /* the source had been read before it failed over there */
        call = "gshmem_quiet";
        status = gshmem_quiet();
    }
    CHECK_EQ(status, GSHMEM_ERR_DEVICE);
    gshmem_last_error(&line);
    CHECK_HAS(line, call);
    CHECK_HAS(line, "with PE 1, on another node: device failed");
    CHECK_OK(gshmem_quiet()); /* told once */
}

/* At the source (0) or the target (1), at the first piece, a later one or the last. */
static void puts_fail(int where, long nth)
{
    plan(where, "cuMemcpyAsync", nth);
    if (me == 0)
        check_failure(gshmem_putmem_signal(gpu, own, BYTES, flag, 99, GSHMEM_SIGNAL_SET, 1), "put_signal");
    go_on();
}

static void gets_fail(int where, long nth)
{
    plan(where, "cuMemcpyAsync", nth);
    if (me == 0)
        check_failure(gshmem_getmem(own, gpu, BYTES, 1), "get");
    go_on();
}

static void updates_fail(void)
{
    plan(1, "cuLaunchKernel", 1);
    if (me == 0) {
        CHECK_EQ(gshmem_long_atomic_fetch_add((long *)(void *)gpu, 1, 1), 0);
        CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_DEVICE);
    }
    go_on();
}

int main(void)
{
    void *driver;

    setenv("GSHMEM_ON_ERROR", "return", 1);
    CHECK_OK(gshmem_init());
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    CHECK(driver);
    *(void **)&sim_fail = dlsym(driver, "sim_fail");
    CHECK(sim_fail);
    me = gshmem_my_pe();
    CHECK_EQ(gshmem_n_pes(), 2);
    gpu = gshmem_calloc(1, BYTES);
    own = gshmem_calloc(1, BYTES);
    flag = gshmem_malloc_with_hints(64, GSHMEM_MALLOC_HOST);
    CHECK(gpu && own && flag);
    *flag = 0;
    for (int where = 0; where < 2; where++) {
        for (long nth = 1; nth <= 12; nth += where ? 1 : 11) {
            puts_fail(where, nth);
            gets_fail(where, nth);
        }
        gets_fail(where, 3);
        puts_fail(where, 5);
    }
    updates_fail();
    dlclose(driver);
    return gshmem_finalize();
}
