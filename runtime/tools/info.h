/* What is here, what would be chosen and why: the text of gshmem-info. */
#ifndef GSHMEM_RUNTIME_TOOLS_INFO_H
#define GSHMEM_RUNTIME_TOOLS_INFO_H

#include <stdio.h>

#include "gshmem/base.h"

/* Exported for the program of that name; not part of the API. */
GSHMEM_API int gshmem_info_print(FILE *to);
GSHMEM_API int gshmem_info_print_settings(FILE *to, const char *pattern); /* NULL: all */
GSHMEM_API int gshmem_info_print_nvshmem(FILE *to);

/* sys: "/sys", or a copy of that of another machine; pes: how many PEs its node has, 0: as many as
 * it has GPUs, or CPUs; svg: the file for a picture, NULL: none. */
GSHMEM_API int gshmem_info_print_topology(FILE *to, const char *sys, int pes, const char *svg);

#endif
