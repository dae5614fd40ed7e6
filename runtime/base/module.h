/* Finds and opens GSHMEM's modules: the shared objects that need more than libc and threads. */
#ifndef GSHMEM_BASE_MODULE_H
#define GSHMEM_BASE_MODULE_H

#include <stddef.h>

/* Opens the module NAME ("pmix": gshmem-pmix.so), searching GSHMEM_MODULE_DIR, the installed place
 * beside libgshmem and the build tree, or a path if NAME has a slash; returns its symbol, or NULL
 * with a reason in why. Modules stay open until the process ends. */
void *module_symbol(const char *name, const char *symbol, char *why, size_t why_size);

#endif
