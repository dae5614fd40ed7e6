#ifndef GSHMEM_DEVICE_WAIT_UNTIL_H
#define GSHMEM_DEVICE_WAIT_UNTIL_H

#include "gshmem/device/rma.h"

#endif
