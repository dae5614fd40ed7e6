/* What nvcc's code calls of CUDA's runtime, and GSHMEM's headers of the library, where a job runs. */
#include <stddef.h>
#include <stdio.h>

enum { INVALID_SYMBOL = 13 };

struct module {
    unsigned size, version;
    const char *device;
    int (*fill)(const void *state);
};

int filled; /* modules */
static int known;
static void *handle;
static char state[4096];

void **__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
    (void)binary;
}

void __cudaUnregisterFatBinary(void **binary)
{
    (void)binary;
}

void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int external, size_t bytes,
                       int constant, int global)
{
    (void)binary, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant, (void)global;
    known = 1;
}

void __cudaRegisterFunction(void)
{
}

char __cudaInitModule(void **binary)
{
    (void)binary;
    return 0;
}

int __cudaPushCallConfiguration(void)
{
    return 0;
}

int __cudaPopCallConfiguration(void)
{
    return 0;
}

int __cudaLaunchKernel(void)
{
    return 0;
}

int __cudaGetKernel(void)
{
    return 0;
}

int cudaLaunchKernel(void)
{
    return 0;
}

int cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    *stream = &handle;
    return 0;
}

int cudaStreamSynchronize(void *stream)
{
    (void)stream;
    return 0;
}

int cudaStreamDestroy(void *stream)
{
    (void)stream;
    return 0;
}

int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind,
                            void *stream)
{
    (void)symbol, (void)from, (void)bytes, (void)offset, (void)kind, (void)stream;
    return known ? 0 : INVALID_SYMBOL;
}

void gshmem_device_register(struct module *module)
{
    int error = module->fill(state);

    if (error)
        printf("filling the state of a module fails: error %d\n", error);
    filled += !error;
}

void gshmem_device_unregister(struct module *module)
{
    (void)module;
}
