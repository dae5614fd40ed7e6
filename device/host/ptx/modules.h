/* Modules of PTX that were translated to C, and the PTX in what nvcc makes. */
#ifndef GSHMEM_DEVICE_HOST_PTX_MODULES_H
#define GSHMEM_DEVICE_HOST_PTX_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gshmem/host_device/ptx/module.h"

/* The module that was made of this text, for one host code alone until it is given back: each of
 * two files with the same text has its own. new: only one that was never taken, whose variables
 * have their first values. NULL: there is none that is free. */
struct gshmem_host_ptx_module *ptx_module_take(const char *text, size_t bytes, bool new);
void ptx_module_give_back(struct gshmem_host_ptx_module *module);
/* Where its parts are; NULL: there is none of this name. */
struct gshmem_host_ptx_kernel *ptx_module_kernel(const struct gshmem_host_ptx_module *module,
                                                 const char *name);
const struct gshmem_host_ptx_variable *
ptx_module_variable(const struct gshmem_host_ptx_module *module, const char *name);

/* Makes a kernel known by the address of a function: its stub's, or its own. False: no memory. */
bool ptx_kernel_register(struct gshmem_host_ptx_kernel *kernel, const void *function);
bool ptx_module_register_kernels(struct gshmem_host_ptx_module *module);
/* Their launches are waited for. */
void ptx_module_unregister_kernels(struct gshmem_host_ptx_module *module);

/* A line about it, once; after the settings were read. */
void ptx_module_say(struct gshmem_host_ptx_module *module);

/* The PTX in a fat binary, without copying it. */
enum ptx_found { PTX_FOUND, PTX_NONE, PTX_COMPRESSED };
enum ptx_found ptx_in_fat_binary(const void *data, const char **text, size_t *bytes);

#endif
