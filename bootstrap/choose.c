#define _GNU_SOURCE
#include "bootstrap/choose.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/builtin.h"
#include "bootstrap/inherited.h"
#include "runtime/base/log.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"

enum { WHY_SIZE = 200 };

/* What the environment says of a bootstrap whose ops are in a module, before the module is opened,
 * since opening costs. *module is the one to open. */
typedef enum bootstrap_found wants_module(const struct bootstrap_request *request,
                                          const char **module, char *why, size_t why_size);
static wants_module wants_mpi, wants_pmix;

/* In the order in which they are tried. What the program gave comes first, then the launcher
 * nearest to this process: gshmemrun may itself run inside a launcher's job, and mpiexec.hydra
 * inside a PMIx launcher's (is_further). */
static const struct starter {
    const char *name;
    const struct bootstrap_ops *ops; /* NULL: in a module */
    wants_module *wants;
} starters[] = {
    {"uid", &bootstrap_uid, NULL}, {"mpi", NULL, wants_mpi},
    {"run", &bootstrap_run, NULL}, {"pmix", NULL, wants_pmix},
    {"pmi", &bootstrap_pmi, NULL}, {"single", &bootstrap_single, NULL},
};

enum { STARTERS = sizeof starters / sizeof starters[0] };

/* A module is built against one MPI; the one to open is that of the MPI in this process. */
static const struct mpi {
    const char *library;
    const char *module;
} mpis[] = {
    {"libmpi.so.40", "mpi-ompi"},    /* Open MPI 3, 4, 5 */
    {"libmpich.so.12", "mpi-mpich"}, /* MPICH 3, 4, as Debian names it */
    {"libmpi.so.12", "mpi-mpich"},   /* as MPICH itself and those with its ABI name it */
};

/* What launchers leave in the environment of a job of several PEs. */
static const struct trace {
    const char *variable;
    bool counts; /* tells of a job only if it is more than 1 */
} traces[] = {
    {"PMIX_RANK", false},           {"PMI_SIZE", true},
    {"SLURM_NTASKS", true},         {"SLURM_NPROCS", true},
    {"OMPI_COMM_WORLD_SIZE", true},
};

static enum bootstrap_found wants_pmix(const struct bootstrap_request *request, const char **module,
                                       char *why, size_t why_size)
{
    (void)request;
    *module = "pmix";
    if (getenv("PMIX_NAMESPACE") || getenv("PMIX_RANK"))
        return BOOTSTRAP_PRESENT;
    snprintf(why, why_size, "PMIX_NAMESPACE and PMIX_RANK are not set");
    return BOOTSTRAP_ABSENT;
}

static enum bootstrap_found wants_mpi(const struct bootstrap_request *request, const char **module,
                                      char *why, size_t why_size)
{
    if (!request->mpi_comm) {
        snprintf(why, why_size, "no MPI communicator was given to gshmem_init_attr");
        return BOOTSTRAP_ABSENT;
    }
    for (size_t i = 0; i < sizeof mpis / sizeof mpis[0]; i++) {
        void *loaded = dlopen(mpis[i].library, RTLD_LAZY | RTLD_NOLOAD);
        if (loaded) {
            dlclose(loaded);
            *module = mpis[i].module;
            return BOOTSTRAP_PRESENT;
        }
    }
    snprintf(why, why_size,
             "an MPI communicator was given, but this process has neither Open MPI (libmpi.so.40) "
             "nor MPICH (libmpich.so.12, libmpi.so.12) loaded as a shared library");
    return BOOTSTRAP_BROKEN;
}

static bool every_slot_filled(const struct bootstrap_ops *ops)
{
    return ops->name && ops->detect && ops->open && ops->publish && ops->fence && ops->fetch &&
           ops->abort && ops->close;
}

/* The ops that a module exports, or NULL with a reason. */
static const struct bootstrap_ops *module_ops(const char *name, char *why, size_t why_size)
{
    const struct bootstrap_ops *ops = module_symbol(name, "gshmem_bootstrap", why, why_size);

    if (!ops)
        return NULL;
    if (ops->version != BOOTSTRAP_VERSION || ops->size < sizeof *ops) {
        snprintf(why, why_size,
                 "module %s speaks bootstrap version %u (%zu bytes), this is %d (%zu)", name,
                 ops->version, ops->size, BOOTSTRAP_VERSION, sizeof *ops);
        return NULL;
    }
    if (!every_slot_filled(ops)) {
        snprintf(why, why_size, "module %s leaves a slot of gshmem_bootstrap empty", name);
        return NULL;
    }
    return ops;
}

/* The module that is wanted is not there. */
static enum bootstrap_found missing_module(const struct starter *s, char *why, size_t why_size)
{
    char reason[200];

    snprintf(reason, sizeof reason, "%s", why);
    if (s->wants == wants_mpi) {
        snprintf(why, why_size, "an MPI communicator was given, but %s", reason);
        return BOOTSTRAP_BROKEN;
    }
    snprintf(why, why_size, "a PMIx launcher started this process, but %s", reason);
    /* A launcher that also speaks PMI-1 can still be reached that way. */
    return getenv("PMI_FD") || getenv("PMI_PORT") ? BOOTSTRAP_ABSENT : BOOTSTRAP_BROKEN;
}

/* Detects one bootstrap. *ops is set if it is present. */
static enum bootstrap_found bootstrap_look(const struct starter *s,
                                           const struct bootstrap_request *request,
                                           const struct bootstrap_ops **ops, char *why,
                                           size_t why_size)
{
    const char *module;

    *ops = s->ops;
    if (s->wants) {
        enum bootstrap_found wanted = s->wants(request, &module, why, why_size);
        if (wanted != BOOTSTRAP_PRESENT)
            return wanted;
        *ops = module_ops(module, why, why_size);
        if (!*ops)
            return missing_module(s, why, why_size);
    }
    return (*ops)->detect(request, why, why_size);
}

/* Whether this is not the launcher that has started the process, but one whose job that launcher
 * runs in: hydra's processes there have the variables of both, as have those of a hydra that starts
 * its proxies by an srun with PMIx. */
static bool is_further(const struct starter *s, char *why, size_t why_size)
{
    if (s->wants != wants_pmix || !inherited_is_open())
        return false;
    snprintf(why, why_size,
             "PMI_FD is an open connection: a PMI-1 launcher is nearer to this process");
    return true;
}

/* A launcher's traces that nothing could use: N jobs of one would be a silent lie. */
static const struct trace *find_trace(void)
{
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        const char *value = getenv(traces[i].variable);
        if (value && (!traces[i].counts || atoi(value) > 1))
            return &traces[i];
    }
    return NULL;
}

static gshmem_status_t refuse_alone(void)
{
    const struct trace *trace = find_trace();

    if (!trace)
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_BOOTSTRAP,
                "%s=%s says that a launcher started this process, but none can be reached: "
                "start with gshmemrun, mpirun, mpiexec.hydra, srun --mpi=pmix or "
                "--mpi=pmi2; or set GSHMEM_BOOTSTRAP=single for a job of one",
                trace->variable, getenv(trace->variable));
}

/* A name of the table, or the path of somebody's own module. */
static gshmem_status_t open_named(const char *name, const struct bootstrap_request *request,
                                  struct bootstrap **out)
{
    const struct bootstrap_ops *ops = NULL;
    enum bootstrap_found found = BOOTSTRAP_BROKEN;
    char why[WHY_SIZE] = "expected auto, uid, mpi, run, pmix, pmi, single, or the path of a module "
                         "with a slash in it";

    for (int i = 0; i < STARTERS; i++) {
        if (strcmp(name, starters[i].name) == 0)
            found = bootstrap_look(&starters[i], request, &ops, why, sizeof why);
    }
    if (strchr(name, '/') && (ops = module_ops(name, why, sizeof why)))
        found = ops->detect(request, why, sizeof why);
    if (found != BOOTSTRAP_PRESENT)
        return fail(GSHMEM_ERR_BOOTSTRAP, "GSHMEM_BOOTSTRAP=%s: %s", name, why);
    log_info("bootstrap %s: GSHMEM_BOOTSTRAP asks for it", ops->name);
    return ops->open(request, out);
}

static gshmem_status_t open_detected(const struct bootstrap_request *request,
                                     struct bootstrap **out)
{
    for (int i = 0; i < STARTERS; i++) {
        const struct bootstrap_ops *ops;
        char why[WHY_SIZE] = "";

        if (starters[i].ops == &bootstrap_single) {
            gshmem_status_t status = refuse_alone();
            if (status)
                return status;
        }
        if (is_further(&starters[i], why, sizeof why))
            continue;
        enum bootstrap_found found = bootstrap_look(&starters[i], request, &ops, why, sizeof why);
        if (found == BOOTSTRAP_BROKEN)
            return fail(GSHMEM_ERR_BOOTSTRAP, "bootstrap %s: %s", starters[i].name, why);
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
    /* What is asked for by name is taken without a look at the others; and one that is found
     * leaves no traces unused. */
    bool decided = strcmp(settings_string(SETTING_BOOTSTRAP), "auto") != 0, named = decided;
    size_t n = 0;

    for (; n < STARTERS && n < capacity; n++) {
        const struct bootstrap_ops *ops;
        struct bootstrap_report *r = &reports[n];

        r->name = starters[n].name;
        r->why[0] = 0;
        r->found = !named && is_further(&starters[n], r->why, sizeof r->why)
                       ? BOOTSTRAP_ABSENT
                       : bootstrap_look(&starters[n], &request, &ops, r->why, sizeof r->why);
        if (starters[n].ops == &bootstrap_single && !decided && find_trace()) {
            r->found = BOOTSTRAP_BROKEN;
            snprintf(r->why, sizeof r->why, "%s is set by a launcher, and none can be reached",
                     find_trace()->variable);
        }
        decided |= r->found == BOOTSTRAP_PRESENT;
    }
    return n;
}
