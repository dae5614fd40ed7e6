/* What a job says of itself when it starts, if GSHMEM_INFO asks for it. */
#ifndef GSHMEM_RUNTIME_GREET_H
#define GSHMEM_RUNTIME_GREET_H

#include <stdio.h>

#include "runtime/base/settings.h"

void greet(FILE *to);
/* What "auto" stands for on this machine: for settings_print. */
const char *greet_automatic(enum setting s, char *text, size_t size);

#endif
