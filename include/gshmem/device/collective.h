#ifndef GSHMEM_DEVICE_COLLECTIVE_H
#define GSHMEM_DEVICE_COLLECTIVE_H

#include "gshmem/device/rma.h"

#endif
