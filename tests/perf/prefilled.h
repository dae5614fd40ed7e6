/* Whom prefilled.c puts to: another PE (prefilled_pe.c), or PEs behind NICs that are played within
 * the process (cost/prefilled_nic.c). */
#ifndef PREFILLED_H
#define PREFILLED_H

#include <stdint.h>

#include "gshmem.h"
#include "gshmem/device/state.h"

enum { PREFILLED_SPACE = 2 << 20 /* of the symmetric heap, from its beginning */ };

void target_open(void);  /* before gshmem_init */
void target_begin(void); /* the contexts have been made */
int target_of(const struct gshmem_device_channel *c);
/* Where that PE has what is at this address here; NULL: in another process. */
const char *target_memory(int pe, uintptr_t address);
/* What proxies have taken of CPUs so far, in s. */
double target_cpu_seconds(void);
void target_end(void);

#endif
