/* The path of a file that is named at the start and written at the end: by then the program may
 * have changed its working directory. */
#ifndef GSHMEM_BASE_ABSOLUTE_PATH_H
#define GSHMEM_BASE_ABSOLUTE_PATH_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The caller frees it; NULL: out of memory. It stays relative if the working directory has no
 * name. */
static inline char *absolute_path(const char *path)
{
    char *folder = path[0] == '/' ? NULL : getcwd(NULL, 0);
    const size_t size = (folder ? strlen(folder) + 1 : 0) + strlen(path) + 1;
    char *absolute = malloc(size);

    if (absolute)
        snprintf(absolute, size, "%s%s%s", folder ? folder : "", folder ? "/" : "", path);
    free(folder);
    return absolute;
}

#endif
