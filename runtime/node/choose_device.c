#define _GNU_SOURCE
#include "runtime/node/choose_device.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "runtime/base/log.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/job/ranges.h"
#include "runtime/node/nics.h"
#include "runtime/node/node.h"

enum { STALL_SECONDS = 10 }; /* seconds, if GSHMEM_WATCHDOG is not set */


const struct device_ops *device_find_cuda(char *why, size_t why_size)
{
    const struct device_ops *ops = module_symbol("cuda", "gshmem_device", why, why_size);

    if (ops && (ops->size != sizeof *ops || ops->version != DEVICE_VERSION)) {
        snprintf(
            why, why_size,
            "module gshmem-cuda.so is of another version of GSHMEM (interface %u, expected %u)",
            ops->version, DEVICE_VERSION);
        return NULL;
    }
    return ops;
}

struct device_config device_config_of(int index, bool hosts)
{
    const unsigned watchdog = (unsigned)settings_number(SETTING_WATCHDOG);

    return (struct device_config){
        .size = sizeof(struct device_config),
        .fail = fail,
        .info = log_info_device,
        .index = index,
        .wanted = settings_string(SETTING_CUDA_DEVICE),
        .share = (int)settings_number(SETTING_CUDA_SHARE),
        .multicast = settings_number(SETTING_CUDA_MULTICAST) == CHOICE_CUDA_MULTICAST_AUTO,
        .warn = log_warn_line,
        .stall_seconds =
            watchdog && settings_source(SETTING_WATCHDOG) ? watchdog : STALL_SECONDS,
        .domain = hosts && settings_number(SETTING_CUDA_DOMAIN) == CHOICE_CUDA_DOMAIN_AUTO,
    };
}

static gshmem_status_t open_cuda(struct job *j, const struct device_config *config, bool asked)
{
    char why[400];
    const struct device_ops *ops = device_find_cuda(why, sizeof why);
    bool usable = ops && ops->usable(config, why, sizeof why);

    if (usable)
        return ops->open(config, &j->device);
    if (asked)
        return fail(GSHMEM_ERR_DEVICE, "GSHMEM_DEVICE=cuda: %s", why);
    log_warn(
        "this program has kernels for GPUs, and no GPU can be used, so that they find no job: %s "
        "(or compile it for CPUs, with gshmemcc --device=host)",
        why);
    return GSHMEM_OK;
}

enum nic_way device_nic_way(const struct device_report *r, char *why, size_t why_size)
{
    static const enum nic_way asked[] = {[CHOICE_IB_GPU_DMA_BUF] = NIC_BY_DMA_BUF,
                                         [CHOICE_IB_GPU_PEERMEM] = NIC_BY_PEERMEM,
                                         [CHOICE_IB_GPU_STAGING] = NIC_BY_STAGING};
    const int64_t choice = settings_number(SETTING_IB_GPU);

    if (r->nic_order == DEVICE_NIC_UNORDERED &&
        settings_number(SETTING_CUDA_FLUSH) != CHOICE_CUDA_FLUSH_OFF &&
        asked[choice] != NIC_BY_STAGING) {
        snprintf(why, why_size,
                 "the GPU does not order what NICs write, and its driver cannot flush it "
                 "(GSHMEM_CUDA_FLUSH=off takes the risk)");
        return NIC_BY_STAGING;
    }
    if (choice == CHOICE_IB_GPU_AUTO)
        return nics_choose_way("/sys", r->dma_buf, why, why_size);
    snprintf(why, why_size, "GSHMEM_IB_GPU asks for it");
    return asked[choice];
}

/* Logs which NIC is nearest to this PE's GPU, and how it accesses the GPU's memory: RDMA transports
 * choose by that, and it explains GSHMEM_TCP_IF=nearest. */
static void tell_of_nics(struct job *j, const struct device_config *config)
{
    struct device_report r;
    struct nic nearest;
    char why[300];

    j->nic_way = NIC_BY_STAGING;
    j->flushes = settings_number(SETTING_CUDA_FLUSH) == CHOICE_CUDA_FLUSH_ON;
    if (!j->device->ops->own_heap || (j->bootstrap->n_hosts == 1 && !log_enabled(LOG_INFO)))
        return;
    j->device->ops->report(config, &r);
    j->nic_way = device_nic_way(&r, why, sizeof why);
    log_info("NICs get at GPU memory by %s: %s", nics_way_name(j->nic_way), why);
    if (settings_number(SETTING_CUDA_FLUSH) == CHOICE_CUDA_FLUSH_AUTO)
        j->flushes = j->nic_way != NIC_BY_STAGING && r.nic_order == DEVICE_NIC_FLUSHED;
    if (!log_enabled(LOG_INFO))
        return;
    if (nics_survey("/sys", r.pci, &nearest, 1))
        log_info("the NIC nearest to GPU %s: %s %s %s", r.pci, nearest.rdma, nearest.interface,
                 nics_distance_text(nearest.distance));
}

/* The address of the GPU that this PE would take; "": there is none. */
static void device_find_gpu(int index, char pci[16])
{
    struct device_config config = device_config_of(index, false);
    struct device_report r;
    char why[400];
    const struct device_ops *cuda = device_find_cuda(why, sizeof why);

    pci[0] = 0;
    if (!cuda || !cuda->usable(&config, why, sizeof why))
        return;
    cuda->report(&config, &r);
    snprintf(pci, 16, "%.15s", r.pci);
}

void device_find_center(int index, bool kernels, struct nic_center *center, int *nodes)
{
    const int64_t asked = settings_number(SETTING_DEVICE);
    cpu_set_t cpus;

    *center = (struct nic_center){.node = -1};
    if (asked == CHOICE_DEVICE_CUDA || (asked == CHOICE_DEVICE_AUTO && kernels))
        device_find_gpu(index, center->pci);
    if (sched_getaffinity(0, sizeof cpus, &cpus))
        CPU_ZERO(&cpus);
    center->node = nics_node_of("/sys", &cpus, nodes);
}

void device_nearest_interfaces(int index, char *list, size_t size)
{
    char pci[16];

    device_find_gpu(index, pci);
    list[0] = 0;
    if (pci[0])
        nics_nearest("/sys", pci, list, size);
    log_info("GSHMEM_TCP_IF=nearest: %s",
             list[0] ? list : "all, as it cannot be told which that is");
}

gshmem_status_t device_start(struct job *j, add_module_fn *add, remove_module_fn *remove)
{
    int64_t asked = settings_number(SETTING_DEVICE);
    struct device_config config = device_config_of(j->node->index, j->bootstrap->n_hosts > 1);
    const bool kernels = j->gpu_kernels;
    gshmem_status_t status;

    config.add_module = add;
    config.remove_module = remove;
    if (asked == CHOICE_DEVICE_CUDA || (asked == CHOICE_DEVICE_AUTO && kernels)) {
        status = open_cuda(j, &config, asked == CHOICE_DEVICE_CUDA);
        if (!status && j->device)
            status = j->device->ops->bind(j->device);
        if (status)
            return status;
    }
    if (!j->device && (status = device_host.open(&config, &j->device)))
        return status;
    log_info("device %s: %s (%s)", j->device->ops->name, j->device->ops->text(j->device),
             asked != CHOICE_DEVICE_AUTO ? "by GSHMEM_DEVICE"
             : kernels            ? "this program has kernels for GPUs"
                                  : "this program has no kernels for GPUs");
    tell_of_nics(j, &config);
    return GSHMEM_OK;
}

void device_stop(struct job *j)
{
    if (j->device)
        j->device->ops->close(j->device);
    j->device = NULL;
}
