/* A simulated GPU for each PE: its memory, which no load or store of the library may touch, copies
 * and updates that take time, and no kernels of its own. */
#ifndef TEST_SIMULATION_GPU_H
#define TEST_SIMULATION_GPU_H

#include <stdint.h>

#include "device/device.h"

extern const struct device_ops gpu_ops;

/* The bytes at an address of a GPU's memory, for the model. */
void *gpu_bytes(const void *at);

#endif
