/* Turns preprocessed CUDA source, read from a descriptor, into C++ for the host device. */
#ifndef GSHMEM_TRANSLATE_TRANSLATE_H
#define GSHMEM_TRANSLATE_TRANSLATE_H

#include <stdbool.h>
#include <stdio.h>

/* False after messages in the compiler's own form: file:line: error: … */
bool translate_source(int from, FILE *to);

#endif
