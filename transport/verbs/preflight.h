#ifndef GSHMEM_TRANSPORT_VERBS_PREFLIGHT_H
#define GSHMEM_TRANSPORT_VERBS_PREFLIGHT_H

#include "transport/transport.h"

/* See `report` of struct transport_ops; sys: /sys. */
void preflight_report(const struct transport_config *config, const char *sys, transport_line *line,
                      void *to);

#endif
