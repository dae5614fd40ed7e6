/* Which transports a job uses: TCP, and verbs above it where there are NICs that can; and which
 * batches it takes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"
#include "runtime/base/unseen.h"
#include "runtime/job/job.h"
#include "runtime/network/network.h"
#include "runtime/network/parts.h"
#include "runtime/node/choose_device.h"
#include "transport/optional.h"

int network_distance(void *context, const char *device, const char **text)
{
    return nics_distance("/sys", context, device, text);
}

/* The module's functions, or NULL with the reason. */
static const struct transport_ops *find_verbs(char *why, size_t why_size)
{
    const struct transport_ops *ops = module_symbol("verbs", "gshmem_transport", why, why_size);
    char other[40];

    if (ops && (ops->size != sizeof *ops || ops->version != TRANSPORT_VERSION)) {
        snprintf(
            why, why_size,
            "module gshmem-verbs.so is of another version of GSHMEM (interface %u, expected %u)",
            ops->version, TRANSPORT_VERSION);
        return NULL;
    }
    if (ops && ops->settings && settings_find_other(ops->settings, other, sizeof other)) {
        snprintf(why, why_size,
                 "module gshmem-verbs.so is of another version of GSHMEM (it knows other settings, "
                 "as GSHMEM_%s)",
                 other);
        return NULL;
    }
    if (ops && !transport_is_complete(ops)) {
        snprintf(
            why, why_size,
            "module gshmem-verbs.so leaves a slot of gshmem_transport empty that has no default");
        return NULL;
    }
    if (!ops && strstr(why, "libibverbs.so"))
        snprintf(why, why_size,
                 "libibverbs.so.1 is not installed (Debian: packages libibverbs1 and "
                 "ibverbs-providers)");
    return ops;
}

bool network_verbs_usable(char *why, size_t why_size)
{
    const struct transport_config config = {.number = settings_number_of,
                                            .text = settings_string_of};
    const struct transport_ops *ops = find_verbs(why, why_size);

    return ops && transport_usable(ops, &config, why, why_size) > 0;
}

/* Most machines have no NIC: their PEs do not load libibverbs, and have no part of the heap for
 * NICs. */
static bool system_has_rdma(void)
{
    return access("/sys/class/infiniband", F_OK) == 0;
}

bool network_may_have_nics(int hosts)
{
    const int64_t asked = settings_number(SETTING_TRANSPORT);

    return hosts > 1 && (asked == CHOICE_TRANSPORT_VERBS ||
                         (asked == CHOICE_TRANSPORT_AUTO && system_has_rdma()));
}

void network_verbs_report(transport_line *line, void *to)
{
    struct nic_center center;
    const struct transport_config config = {.number = settings_number_of,
                                            .text = settings_string_of,
                                            .context = &center,
                                            .distance = network_distance};
    char why[300];
    const struct transport_ops *ops = find_verbs(why, sizeof why);
    int parts;

    device_find_center(0, true, &center, &parts);
    if (ops)
        transport_report(ops, &config, line, to);
}

/* Adds verbs on top of TCP, where they can be used. TCP then carries their control messages, and
 * requests that NICs cannot. */
static gshmem_status_t add_verbs(struct network *n)
{
    int64_t asked = settings_number(SETTING_TRANSPORT);
    char why[300];

    if (asked == CHOICE_TRANSPORT_TCP)
        return GSHMEM_OK;
    if (asked == CHOICE_TRANSPORT_AUTO && !system_has_rdma()) {
        log_info("transport verbs is not used: this machine has no RDMA device");
        return GSHMEM_OK;
    }
    const struct transport_ops *ops = find_verbs(why, sizeof why);
    if (ops)
        device_find_center(n->config.turn, n->job->gpu_kernels, &n->center, &n->config.parts);
    const int usable = ops ? transport_usable(ops, &n->config, why, sizeof why) : 0;
    if (usable < 0)
        return fail(GSHMEM_ERR_ARGUMENT, "%s", why);
    if (!usable) {
        if (asked == CHOICE_TRANSPORT_VERBS)
            return fail(GSHMEM_ERR_UNREACHABLE, "GSHMEM_TRANSPORT=verbs: %s", why);
        log_info("transport verbs is not used: %s", why);
        return GSHMEM_OK;
    }
    struct transport *verbs = NULL; /* nothing remains after a failure */
    n->config.below = n->remote;
    log_info("transport verbs: %s", why);
    if (asked != CHOICE_TRANSPORT_VERBS)
        unseen_pause(); /* TCP does without */
    gshmem_status_t status = ops->open(&n->config, &verbs);
    unseen_resume();
    if (!status)
        n->remote = verbs;
    if (!status || asked == CHOICE_TRANSPORT_VERBS)
        return status;
    log_warn(
        "transport verbs is not used, as it could not be opened: other nodes are reached by tcp");
    n->config.below = NULL;
    return GSHMEM_OK;
}

gshmem_status_t network_choose(struct network *n)
{
    char why[200];
    gshmem_status_t status;

    if (!transport_tcp.usable(&n->config, why, sizeof why))
        return fail(GSHMEM_ERR_UNREACHABLE,
                    "start-up: the job is on several nodes, and no transport can be used: tcp: %s",
                    why);
    log_info("transport tcp: %s", why);
    status = transport_tcp.open(&n->config, &n->remote);
    return status ? status : add_verbs(n);
}

bool network_takes_batches(const struct network *n)
{
    return n->remote && n->remote->ops->batches != TRANSPORT_NO_BATCHES;
}

size_t network_batch_bytes(const struct network *n, int each)
{
    const int takes = n->remote ? n->remote->ops->batches : TRANSPORT_NO_BATCHES;

    if (takes == TRANSPORT_ALL_BATCHES)
        return SIZE_MAX;
    return takes == TRANSPORT_SMALL_BATCHES && each != TRANSPORT_GET ? TRANSPORT_COPIED : 0;
}
