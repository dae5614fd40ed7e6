/* Opens a library; 0 if its kernels have been given the job. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int *filled = library ? (int *)dlsym(library, "filled") : NULL;

    if (!filled)
        printf("%s\n", dlerror());
    return !filled || *filled != 1;
}
