/* Whether a transport is one.
 *
 *     transport-conform tcp|MODULE.so [SCENARIO…]
 *
 * MODULE.so exports gshmem_transport. One scenario alone is easy to debug; CONFORM_VERBOSE=1 prints
 * what the transport logs. */
#include "conform.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    struct subject what = {.ops = &transport_tcp};

    if (argc < 2)
        CHECK_FAIL("usage: %s tcp|MODULE.so [SCENARIO…]", argv[0]);
    if (strcmp(argv[1], "tcp") != 0) {
        void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!module)
            CHECK_FAIL("%s", dlerror());
        what.ops = dlsym(module, "gshmem_transport");
        if (!what.ops)
            CHECK_FAIL("%s has no symbol gshmem_transport", argv[1]);
    }
    return conform(&what, argc - 2, argv + 2);
}
