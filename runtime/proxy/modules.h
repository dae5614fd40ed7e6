/* The modules with device code that have been registered. */
#ifndef GSHMEM_PROXY_MODULES_H
#define GSHMEM_PROXY_MODULES_H

#include <stdbool.h>

#include "gshmem/device/state.h"

/* Whether any of them is for that device. */
bool modules_any(const char *device);
/* Gives all of them a state; the first failure, logged. */
gshmem_status_t modules_fill(const struct gshmem_device_state *state);
/* As gshmem_device_register does, and says how it went. */
gshmem_status_t modules_add(struct gshmem_device_module *m);
gshmem_status_t module_fill(struct gshmem_device_module *m, const struct gshmem_device_state *state);

#endif
