/* Finds out who started this process. */
#define _GNU_SOURCE
#include "bootstrap/bootstrap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/builtin.h"
#include "runtime/base/log.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"

/* In the order in which they are asked. What the program itself says comes first, then the starter
 * nearest to this process: gshmemrun may itself run inside a launcher's job. */
static const struct starter {
    const char *name;
    const struct bootstrap_ops *ops; /* NULL: the module of that name */
} starters[] = {
    {"mpi", NULL},
    {"pmix", NULL},
    {"single", &bootstrap_single},
};

enum { STARTERS = sizeof starters / sizeof starters[0] };

/* What launchers leave in the environment of a job of several PEs. */
static const struct trace {
    const char *variable;
    bool counts; /* tells of a job only if it is more than 1 */
} traces[] = {
    {"PMIX_RANK", false}, {"PMI_RANK", false},    {"PMI_SIZE", true},
    {"SLURM_NTASKS", true}, {"SLURM_NPROCS", true}, {"OMPI_COMM_WORLD_SIZE", true},
};

static bool usable(const struct bootstrap_ops *ops, const char *name, char *why, size_t why_size)
{
    if (ops->version == BOOTSTRAP_VERSION && ops->size >= sizeof *ops)
        return true;
    snprintf(why, why_size, "module %s speaks bootstrap version %u (%zu bytes), this is %d (%zu)",
             name, ops->version, ops->size, BOOTSTRAP_VERSION, sizeof *ops);
    return false;
}

/* The ops of a starter, or NULL with a reason. */
static const struct bootstrap_ops *starter_ops(const struct starter *s, char *why, size_t why_size)
{
    if (s->ops)
        return s->ops;
    const struct bootstrap_ops *ops = module_symbol(s->name, "gshmem_bootstrap", why, why_size);
    return ops && usable(ops, s->name, why, why_size) ? ops : NULL;
}

/* A module that is not there cannot look for its launcher; its traces say whether it is missed. */
static enum bootstrap_found missing_module(const struct starter *s,
                                           const struct bootstrap_request *request, char *why,
                                           size_t why_size)
{
    char reason[200];

    snprintf(reason, sizeof reason, "%s", why);
    if (strcmp(s->name, "pmix") == 0 && getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK")) {
        /* A launcher that also speaks PMI-1 can still be reached that way. */
        snprintf(why, why_size, "a PMIx launcher started this process, but %s", reason);
        return getenv("PMI_FD") || getenv("PMI_PORT") ? BOOTSTRAP_ABSENT : BOOTSTRAP_BROKEN;
    }
    if (strcmp(s->name, "mpi") == 0 && request->mpi_comm) {
        snprintf(why, why_size, "an MPI communicator was given, but %s", reason);
        return BOOTSTRAP_BROKEN;
    }
    return BOOTSTRAP_ABSENT;
}

static enum bootstrap_found look(const struct starter *s, const struct bootstrap_request *request,
                                 const struct bootstrap_ops **ops, char *why, size_t why_size)
{
    bool wanted = true;

    /* Opening a module costs; its absence is told by the environment. */
    if (strcmp(s->name, "pmix") == 0)
        wanted = getenv("PMIX_NAMESPACE") || getenv("PMIX_RANK");
    if (strcmp(s->name, "mpi") == 0)
        wanted = request->mpi_comm != NULL;
    if (!wanted) {
        snprintf(why, why_size, "%s", strcmp(s->name, "mpi") == 0
                                          ? "no MPI communicator was given to gshmem_init_attr"
                                          : "PMIX_NAMESPACE and PMIX_RANK are not set");
        *ops = NULL;
        return BOOTSTRAP_ABSENT;
    }
    *ops = starter_ops(s, why, why_size);
    return *ops ? (*ops)->detect(request, why, why_size) : missing_module(s, request, why, why_size);
}

/* A launcher's traces that nothing could use: N jobs of one would be a silent lie. */
static gshmem_status_t refuse_alone(void)
{
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        const char *value = getenv(traces[i].variable);
        if (value && (!traces[i].counts || atoi(value) > 1))
            return fail(GSHMEM_ERR_BOOTSTRAP,
                        "%s=%s says that a launcher started this process, but none can be reached: "
                        "start with gshmemrun, mpirun, mpiexec.hydra, srun --mpi=pmix or "
                        "--mpi=pmi2; or set GSHMEM_BOOTSTRAP=single for a job of one",
                        traces[i].variable, value);
    }
    return GSHMEM_OK;
}

static gshmem_status_t open_named(const char *name, const struct bootstrap_request *request,
                                  struct bootstrap **out)
{
    struct starter chosen = {name, NULL};
    char why[200] = "";

    for (int i = 0; i < STARTERS; i++) {
        if (strcmp(name, starters[i].name) == 0)
            chosen = starters[i];
    }
    const struct bootstrap_ops *ops = starter_ops(&chosen, why, sizeof why);
    if (!ops)
        return fail(GSHMEM_ERR_BOOTSTRAP, "GSHMEM_BOOTSTRAP=%s: %s", name, why);
    if (ops->detect(request, why, sizeof why) != BOOTSTRAP_PRESENT)
        return fail(GSHMEM_ERR_BOOTSTRAP, "GSHMEM_BOOTSTRAP=%s: %s", name, why);
    log_info("bootstrap %s: GSHMEM_BOOTSTRAP asks for it", ops->name);
    return ops->open(request, out);
}

static gshmem_status_t open_detected(const struct bootstrap_request *request,
                                     struct bootstrap **out)
{
    for (int i = 0; i < STARTERS; i++) {
        const struct bootstrap_ops *ops;
        char why[200] = "";

        if (starters[i].ops == &bootstrap_single) {
            gshmem_status_t status = refuse_alone();
            if (status)
                return status;
        }
        enum bootstrap_found found = look(&starters[i], request, &ops, why, sizeof why);
        if (found == BOOTSTRAP_BROKEN)
            return fail(GSHMEM_ERR_BOOTSTRAP, "%s", why);
        if (found == BOOTSTRAP_PRESENT) {
            log_info("bootstrap %s: %s", ops->name, why);
            return ops->open(request, out);
        }
    }
    return fail(GSHMEM_ERR_BOOTSTRAP, "no bootstrap can be used");
}

gshmem_status_t bootstrap_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    const char *name = settings_string(SETTING_BOOTSTRAP);

    if (request->uid || request->mpi_comm || strcmp(name, "auto") == 0)
        return open_detected(request, out);
    return open_named(name, request, out);
}

size_t bootstrap_survey(struct bootstrap_report *reports, size_t capacity)
{
    struct bootstrap_request request = {.size = sizeof request, .fail = fail};
    size_t n = 0;

    for (; n < STARTERS && n < capacity; n++) {
        const struct bootstrap_ops *ops;
        struct bootstrap_report *r = &reports[n];

        r->name = starters[n].name;
        r->why[0] = 0;
        r->found = look(&starters[n], &request, &ops, r->why, sizeof r->why);
    }
    return n;
}
