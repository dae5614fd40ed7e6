/* What GSHMEM_LOG_FILE and GSHMEM_LOG_SUBSYSTEM mean: opens the file, reads the list. */
#ifndef GSHMEM_BASE_LOG_FILE_H
#define GSHMEM_BASE_LOG_FILE_H

#include "gshmem/status.h"

/* Lines are added to the file: %h in its name is this machine's name, %p this process's number, %%
 * a %; "": stderr. Subsystems "": all. After a failure both are as they were. Messages name the
 * variables, which may be those of another library. */
gshmem_status_t log_file_set(const char *file, const char *file_variable, const char *subsystems,
                             const char *subsystems_variable);

#endif
