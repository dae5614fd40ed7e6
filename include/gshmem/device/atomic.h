#ifndef GSHMEM_DEVICE_ATOMIC_H
#define GSHMEM_DEVICE_ATOMIC_H

#include "gshmem/device/rma.h"

#endif
