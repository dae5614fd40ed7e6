/* From a kernel's command to a transport's request. Nothing in a command is trusted. */
#ifndef GSHMEM_PROXY_COMMAND_H
#define GSHMEM_PROXY_COMMAND_H

#include "gshmem/device/command.h"
#include "runtime/proxy/channel.h"

/* Whether a command that is marked `more` may be, and so is read with the next slot. */
bool command_may_have_more(const struct gshmem_command *first);
/* Whether that is what the next slot can add to it. */
bool command_continues(const struct gshmem_command *first, const struct gshmem_command *second);

/* What the kernel called, for messages. second: NULL if there is none. */
const char *command_call(const struct gshmem_command *first, const struct gshmem_command *second);

/* The request for it; all of *r but done and tag. What it sends or brings lies in *p, which must
 * outlive it. Fails with a line that says what is wrong. */
gshmem_status_t command_translate(const struct gshmem_command *first,
                                  const struct gshmem_command *second, const struct proxy_way *way,
                                  struct passage *p, struct transport_request *r);

#endif
