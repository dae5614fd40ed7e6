/* NVSHMEM's environment variables: those that other_names.h understands as settings of ours, and
 * those that have no counterpart here. */
#ifndef GSHMEM_BASE_NVSHMEM_SETTINGS_H
#define GSHMEM_BASE_NVSHMEM_SETTINGS_H

#include <stdio.h>

/* A warning that names all that are set and have no counterpart; one PE of a job calls it. */
void nvshmem_settings_warn(void);
/* Which are understood, as a table in Markdown, and which are not. */
void nvshmem_settings_print(FILE *to);

#endif
