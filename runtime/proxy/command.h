/* From a kernel's command to a transport's request. Nothing in a command is trusted. */
#ifndef GSHMEM_PROXY_COMMAND_H
#define GSHMEM_PROXY_COMMAND_H

#include "gshmem/device/command.h"
#include "runtime/proxy/way.h"

/* The kind of a command that has no marks: one slot, and no response. For any other command a
 * number that is not a kind. From its first word. */
static inline uint64_t command_plain_kind(uint64_t word)
{
    const struct gshmem_command all = {.kind = 31, .responds = 1, .more = 1, .raises = 1};

    return word & gshmem_command_encode(&all).word[0];
}

static inline bool command_is_element(uint32_t bytes)
{
    const uint32_t sizes = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 8 | 1u << 16;

    return bytes < 32 && sizes >> bytes & 1;
}

/* Whether a command that is marked `more` may have a second part, and so is read with the next
 * slot. */
bool command_may_have_more(const struct gshmem_command *first);
/* Whether the next slot is a second part of it. */
bool command_continues(const struct gshmem_command *first, const struct gshmem_command *second);

/* Whether it is a GSHMEM_COMMAND_SOURCES. */
bool command_asks_for_sources(const struct passage *p);

/* The name of the function that the kernel called, and its PE, for messages. */
const char *command_name(const struct passage *p);
int command_pe(const struct passage *p);

/* For a GSHMEM_COMMAND_CHECK: fails with a line, or TRANSPORT_FULL. */
gshmem_status_t command_check(const struct gshmem_command *c, const struct proxy_way *way);

/* The request for it; all of *r except done and tag. Data that it sends or receives is in *p, which
 * must outlive it. Fails with a line that says what is wrong. */
gshmem_status_t command_translate(const struct gshmem_command *first,
                                  const struct gshmem_command *second, const struct proxy_way *way,
                                  struct passage *p, struct transport_request *r);

#endif
