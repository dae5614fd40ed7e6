/* Only C code that was translated from PTX includes this (device/host/ptx). It has one function for
 * each instruction that is more than an operator of C, by its name in the table of instructions. */
#ifndef GSHMEM_HOST_DEVICE_PTX_H
#define GSHMEM_HOST_DEVICE_PTX_H

#include <stddef.h>
#include <stdint.h>

#include "execution.h"
#include "ptx/types.h"

#include "ptx/integer.h"
#include "ptx/real.h"
#include "ptx/half.h"
#include "ptx/bytes.h"
#include "ptx/convert.h"
#include "ptx/memory.h"
#include "ptx/module.h"
#include "ptx/mbarrier.h"
#include "ptx/lanes.h"
#include "ptx/matrix.h"
#include "ptx/weak.h"

#endif
