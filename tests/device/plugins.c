/* Libraries with kernels that are loaded while a program runs: two with kernels of one name, which come and go,
 * also while their kernels run, and operations on streams before the first of them came.
 *
 *     plugins FIRST SECOND */
#include <dlfcn.h>

#include "gshmem.h"
#include "gshmem/stream.h"
#include "check.h"

static void *open_plugin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        CHECK_FAIL("%s", dlerror());
    return library;
}

static int call(void *library, const char *name)
{
    int (*function)(void);

    *(void **)&function = dlsym(library, name);
    CHECK(function);
    return function();
}

static void call_with(void *library, const char *name, int *at)
{
    void (*function)(int *);

    *(void **)&function = dlsym(library, name);
    CHECK(function);
    function(at);
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 3);
    CHECK_OK(gshmem_init());
    int *at = gshmem_calloc(1, sizeof *at);
    CHECK(at);
    CHECK_OK(gshmem_quiet_on_stream(NULL)); /* with nothing here that has streams */

    for (int round = 0; round < 100; round++) {
        void *library[2] = {open_plugin(argv[1]), open_plugin(argv[2])};

        for (int i = 0; i < 2; i++) {
            CHECK_EQ(call(library[i], "by_brackets"), i + 1);
            CHECK_EQ(call(library[i], "by_pointer"), i + 1);
            call_with(library[i], "on_stream", at);
        }
        int first = round % 2;
        __atomic_store_n(at, 0, __ATOMIC_SEQ_CST);
        if (round < 20)
            call_with(library[first], "under_way", at);
        CHECK_EQ(dlclose(library[first]), 0); /* which waits for its kernels */
        CHECK_EQ(__atomic_load_n(at, __ATOMIC_SEQ_CST), round < 20 ? 5 * (first + 1) : 0);
        CHECK_EQ(call(library[!first], "by_pointer"), !first + 1);
        CHECK_EQ(call(library[!first], "by_brackets"), !first + 1);
        CHECK_EQ(dlclose(library[!first]), 0);
    }
    return gshmem_finalize();
}
