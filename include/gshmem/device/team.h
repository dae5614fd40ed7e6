#ifndef GSHMEM_DEVICE_TEAM_H
#define GSHMEM_DEVICE_TEAM_H

#include "gshmem/device/rma.h"

#endif
