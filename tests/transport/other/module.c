/* Stands for gshmem-verbs.so of a library whose table of settings has one row less. */
#include "gshmem/base.h"
#include "runtime/base/settings.h"
#include "transport/transport.h"

static int usable(const struct transport_config *config, char *why, size_t why_size)
{
    (void)config;
    (void)why;
    (void)why_size;
    return 1;
}

GSHMEM_API extern const struct transport_ops gshmem_transport;
const struct transport_ops gshmem_transport = {
    .size = sizeof gshmem_transport,
    .version = TRANSPORT_VERSION,
    .name = "verbs",
    .settings = settings_layout + 1,
    .usable = usable,
};
