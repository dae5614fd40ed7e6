/* The library opened by name, used, and closed again, as a plugin's host does: exit survives that.
 *
 *     opened LIBRARY */
#include <dlfcn.h>
#include <stdio.h>

#include "check.h"

int main(int argc, char **argv)
{
    void *library = dlopen(argc == 2 ? argv[1] : "", RTLD_NOW);

    if (!library)
        CHECK_FAIL("%s", dlerror());
    int (*begin)(void) = (int (*)(void))dlsym(library, "gshmem_init");
    int (*end)(void) = (int (*)(void))dlsym(library, "gshmem_finalize");
    CHECK(begin && end);
    CHECK_EQ(begin(), 0);
    CHECK_EQ(end(), 0);
    CHECK_EQ(dlclose(library), 0);
    printf("%s has printed\n", argv[0]);
    return 0;
}
