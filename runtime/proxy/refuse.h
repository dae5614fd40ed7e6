/* Error lines for a collective, or a wait, that a kernel called with bad arguments. */
#ifndef GSHMEM_PROXY_REFUSE_H
#define GSHMEM_PROXY_REFUSE_H

#include "gshmem/device/command.h"

/* For a GSHMEM_COMMAND_REFUSE_COLLECTIVE: fails with its line. */
gshmem_status_t refuse_collective(const struct gshmem_command *c);
/* For a GSHMEM_COMMAND_REFUSE_WAIT. */
gshmem_status_t refuse_wait(const struct gshmem_command *c);
/* Which call a GSHMEM_COMMAND_CHECK is of. */
const char *refuse_name(const struct gshmem_command *c);

#endif
