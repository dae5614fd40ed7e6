/* A program of several translation units, each with kernels, and a library with more of them that is
 * loaded while a job runs and unloaded again, or that is there before the job and outlives it.
 *
 *     units LIBRARY */
#include <dlfcn.h>

#define UNITS_PASS units_pass_first
#include "units_pass.h"

static units_pass_t *load(const char *library, void **handle)
{
    *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        CHECK_FAIL("%s", dlerror());
    void *pass = dlsym(*handle, "units_pass_library");
    CHECK(pass);
    return (units_pass_t *)pass;
}

/* In turn, and each time with words of its own. */
static void job(const char *library, bool before, uint64_t value)
{
    void *handle = NULL;

    if (before)
        load(library, &handle);
    CHECK_OK(gshmem_init());
    uint64_t *words = symmetric_array<uint64_t>(16), *signal = symmetric_array<uint64_t>(16);
    int which = 0;

    units_pass_first(words, signal, which++, value);
    units_pass_second(words, signal, which++, value);
    if (before)
        dlclose(handle); /* another handle is what is used below: it is loaded and unloaded */
    for (int again = 0; again < 3; again++) {
        units_pass_t *pass = load(library, &handle);
        pass(words, signal, which++, value + again);
        CHECK_EQ(dlclose(handle), 0);
        units_pass_second(words, signal, which++, value);
    }
    units_pass_first(words, signal, which++, value);
    if (before)
        load(library, &handle);
    CHECK_OK(gshmem_free(words));
    CHECK_OK(gshmem_free(signal));
    CHECK_OK(gshmem_finalize());
    if (before)
        CHECK_EQ(dlclose(handle), 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        CHECK_FAIL("usage: units LIBRARY");
    job(argv[1], false, 1000);
    job(argv[1], true, 2000);
    job(argv[1], false, 3000);
    return 0;
}
