/* Variables of modules, by the host's variable of the same name, which stands for them. */
#ifndef GSHMEM_DEVICE_HOST_PTX_SYMBOLS_H
#define GSHMEM_DEVICE_HOST_PTX_SYMBOLS_H

#include "gshmem/host_device/ptx/module.h"

void symbols_add(const struct gshmem_host_ptx_module *module, const void *host,
                 const struct gshmem_host_ptx_variable *variable);
void symbols_forget(const struct gshmem_host_ptx_module *module);

#endif
