/* Says where threads wait that cannot go on. */
#ifndef GSHMEM_DEVICE_HOST_REPORT_H
#define GSHMEM_DEVICE_HOST_REPORT_H

#include "device/host/blocks/grid.h"

void report_deadlock(const struct block *block);
void report_mismatch(const struct block *block, const char *file, int line);
void report_grid_deadlock(const struct block *block, const char *file, int line);

#endif
