/* Devices by number, and which one a thread has chosen. */
#ifndef GSHMEM_DEVICE_HOST_DEVICES_H
#define GSHMEM_DEVICE_HOST_DEVICES_H

#include <stdbool.h>

enum { DEVICES_MAX = 1024 };

/* Is there a device of this number, and which one has this thread chosen? */
bool device_exists(int device);
int device_current(void);

#endif
