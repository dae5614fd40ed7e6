/* A library whose variables are symmetric is closed by the program that opened it: it stays, so that nothing else comes
 * to lie where its variables are, which the next job has again and each child of a fork copies.
 *
 *     unloaded LIBRARY */
#include <dlfcn.h>
#include <sys/wait.h>

#include "gshmem.h"

#include "check.h"

int main(int argc, char **argv)
{
    void *library = dlopen(argc == 2 ? argv[1] : "", RTLD_NOW);
    int status;

    if (!library)
        CHECK_FAIL("%s", dlerror());
    long *counter = dlsym(library, "library_counter"); /* the library has asked when it was loaded */
    CHECK(counter);
    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_finalize());
    *counter = 5;
    CHECK_EQ(dlclose(library), 0);
    CHECK_EQ(*counter, 5);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(*counter, 5);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_long_p(counter, 6, 0));
    CHECK_EQ(*counter, 6);
    CHECK_OK(gshmem_finalize());
    return 0;
}
