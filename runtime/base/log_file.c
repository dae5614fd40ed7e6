#define _GNU_SOURCE
#include "runtime/base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"
#include "runtime/base/log_subsystem.h"

enum { FILE_NAME_BYTES = 4096 };

/* Writes the name with what % stands for in it; false: it is too long, or has another letter after
 * a %. */
static bool log_file_expand(const char *name, char *text, size_t size)
{
    char host[65] = "";
    size_t used = 0;

    if (gethostname(host, sizeof host) != 0)
        host[0] = 0;
    for (; *name && used < size; name++) {
        if (*name != '%') {
            text[used++] = *name;
            continue;
        }
        name++;
        if (*name == 'h')
            used += (size_t)snprintf(text + used, size - used, "%s", host);
        else if (*name == 'p')
            used += (size_t)snprintf(text + used, size - used, "%ld", (long)getpid());
        else if (*name == '%')
            text[used++] = '%';
        else
            return false;
    }
    if (used >= size)
        return false;
    text[used] = 0;
    return true;
}

static gshmem_status_t log_file_open(const char *name, const char *variable, int *fd)
{
    char path[FILE_NAME_BYTES];

    *fd = -1;
    if (!*name)
        return GSHMEM_OK;
    if (!log_file_expand(name, path, sizeof path))
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s=%s: expected a file's name of less than %d bytes, in which %%h is the "
                    "machine, %%p the process, %%%% a %%",
                    variable, name, FILE_NAME_BYTES);
    *fd = descriptor_keep(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    return *fd >= 0 ? GSHMEM_OK
                    : fail(GSHMEM_ERR_ARGUMENT, "%s=%s: cannot open %s: %s", variable, name, path,
                           log_errno(errno));
}

gshmem_status_t log_file_set(const char *file, const char *file_variable, const char *subsystems,
                             const char *subsystems_variable)
{
    unsigned chosen;
    const char *wrong;
    int fd;

    if (!log_subsystems_read(subsystems, &chosen, &wrong))
        return fail(GSHMEM_ERR_ARGUMENT,
                    "%s=%s: \"%.*s\" is none of init, bootstrap, topo, mem, p2p, proxy, coll, "
                    "transport, device, util, all",
                    subsystems_variable, subsystems, (int)strcspn(wrong, ","), wrong);
    gshmem_status_t status = log_file_open(file, file_variable, &fd);
    if (!status)
        log_set_place(fd, chosen);
    return status;
}
