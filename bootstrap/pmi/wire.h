/* The connection to a PMI-1 launcher: one request, one reply, both a line.
 *
 * Found by PMI_FD, an inherited socket, or by PMI_PORT ("host:port") and PMI_ID. The first failure
 * ends the connection: what comes after a wrong or missing reply could belong to any request. */
#ifndef GSHMEM_PMI_WIRE_H
#define GSHMEM_PMI_WIRE_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/pmi/line.h"

struct pmi_wire {
    int fd;
    bool broken;
    int timeout_seconds;
    gshmem_status_t (*fail)(gshmem_status_t status, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    struct pmi_input in;
    char line[PMI_LINE_MAX + 1]; /* the last reply */
};

/* Looks at the environment: absent, present, or broken with a reason. */
enum bootstrap_found pmi_wire_detect(char *why, size_t why_size);

/* Connects. *pe and *n_pes are what the launcher says. */
gshmem_status_t pmi_wire_open(struct pmi_wire *w, const struct bootstrap_request *request, int *pe,
                              int *n_pes);

/* Sends a line (given without its newline) and waits for the reply, which must be cmd=expected. */
gshmem_status_t pmi_wire_ask(struct pmi_wire *w, const char *expected, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sends a line that has no reply. */
gshmem_status_t pmi_wire_tell(struct pmi_wire *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Decides on a failure of the last reply: "expected … in it". */
gshmem_status_t pmi_wire_refuse(struct pmi_wire *w, const char *expected);

/* Whether the connection is still open. MPI_Finalize closes it for the whole process. */
bool pmi_wire_is_open(const struct pmi_wire *w);

void pmi_wire_close(struct pmi_wire *w);

#endif
