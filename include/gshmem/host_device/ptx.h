/* What C made of PTX includes (device/host/ptx): one function for each instruction that is more
 * than an operator of C, by the name that the table of instructions has for it. For no one else. */
#ifndef GSHMEM_HOST_DEVICE_PTX_H
#define GSHMEM_HOST_DEVICE_PTX_H

#include <stddef.h>
#include <stdint.h>

#include "execution.h"
#include "ptx/types.h"

#include "ptx/integer.h"
#include "ptx/real.h"
#include "ptx/half.h"
#include "ptx/convert.h"
#include "ptx/memory.h"
#include "ptx/module.h"
#include "ptx/mbarrier.h"
#include "ptx/lanes.h"

#endif
