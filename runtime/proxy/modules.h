/* The modules with device code that have been registered. */
#ifndef GSHMEM_PROXY_MODULES_H
#define GSHMEM_PROXY_MODULES_H

#include <stdbool.h>

#include "device/device.h"
#include "gshmem/device/state.h"

/* Whether any of them is for that device. */
bool modules_any(const char *device);
unsigned modules_count(const char *device);
/* Gives all of them a state; returns the first failure, which was logged. */
gshmem_status_t modules_fill(const struct gshmem_device_state *state);
/* In a child made by fork: kernels on CPU threads find no job, in particular not the parent's.
 * After the child has its own variables. */
void modules_leave_parent(void);
/* Adds it to the list; false: it is of another version, which was logged. */
bool modules_enter(struct gshmem_device_module *m);
gshmem_status_t module_fill(struct gshmem_device_module *m,
                            const struct gshmem_device_state *state);

/* A module that the program has the driver load, which has no `fill` of its own. */
struct driver_module {
    struct gshmem_device_module module; /* first */
    struct device *device;
    const void *handle;
    void *state; /* where its kernels read it */
    struct driver_module *next;
};

/* For modules that the program loads by the driver, which have no `fill` (driver_modules.c). */
gshmem_status_t driver_module_fill(struct gshmem_device_module *m,
                                   const struct gshmem_device_state *state);
/* The device closes: it forgets all modules. */
void driver_modules_forget(void);

#endif
