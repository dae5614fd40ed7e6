/* What is here, what would be chosen and why: the text of gshmem-info. */
#ifndef GSHMEM_RUNTIME_TOOLS_INFO_H
#define GSHMEM_RUNTIME_TOOLS_INFO_H

#include <stdio.h>

#include "gshmem/base.h"

/* Exported for the program of that name; not part of the API. */
GSHMEM_API int gshmem_info_print(FILE *to);
GSHMEM_API int gshmem_info_print_settings(FILE *to, const char *pattern); /* NULL: all */
GSHMEM_API int gshmem_info_print_nvshmem(FILE *to);

#endif
