/* Who started this process: tries the bootstraps in their order and opens the first that is
 * present. For the core; a bootstrap includes bootstrap.h alone. */
#ifndef GSHMEM_BOOTSTRAP_CHOOSE_H
#define GSHMEM_BOOTSTRAP_CHOOSE_H

#include "bootstrap/bootstrap.h"

/* Tries uid, mpi, run, pmix, pmi, single in this order (or takes the one that GSHMEM_BOOTSTRAP
 * names, if the program gave neither uid nor mpi_comm), opens the first that is present, and logs
 * at `info` which one and why. The caller keeps it: a launcher may refuse a second opening. */
gshmem_status_t bootstrap_open(const struct bootstrap_request *request, struct bootstrap **out);

/* What each known bootstrap finds and why; for gshmem-info. */
struct bootstrap_report {
    const char *name;
    enum bootstrap_found found;
    char why[200];
};
size_t bootstrap_survey(struct bootstrap_report *reports, size_t capacity);

#endif
