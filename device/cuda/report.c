/* What gshmem-info says of the GPU that a program would take: what its memory can be used for, and
 * by whom; and where something is missing, what to do about it. */
#include "device/cuda/gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/memory.h"

__attribute__((format(printf, 4, 5))) static void
report_find(struct device_report *r, const char *name, bool has, const char *format, ...)
{
    struct device_finding *f = &r->finding[r->n];
    va_list args;

    if (r->n == DEVICE_FINDINGS_MOST)
        return;
    f->name = name;
    f->has = has;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    r->n++;
}

static void find_share(const struct cuda *c, struct device_report *r)
{
    bool vmm = cuda_has(c, CUDA_ATTRIBUTE_VMM), fd = vmm && cuda_has(c, CUDA_ATTRIBUTE_DESCRIPTORS);
    bool fabric = vmm && cuda_has(c, CUDA_ATTRIBUTE_FABRIC);

    report_find(
        r, "heap grows", fd || fabric, "%s",
        fd ? "pieces go to other PEs of the node as descriptors"
        : fabric
            ? "pieces go to other PEs of the node as fabric handles"
            : "this GPU and driver have no virtual memory management: the heap has its full size "
              "from the start (GSHMEM_HEAP_MAX) and goes by CUDA IPC");
    report_find(
        r, "fabric handles", fabric, "%s",
        fabric ? "PEs of other nodes in the same NVLink domain map this heap by them "
                 "(GSHMEM_CUDA_DOMAIN)"
               : "not offered (they take GPUs of one NVLink domain, and the IMEX service running)");
}

/* Which of the other GPUs this one reaches, and which not. */
static void find_peers(const struct cuda *c, struct device_report *r)
{
    char yes[60] = "", no[60] = "";

    for (cuda_gpu gpu = 0; gpu < c->gpus; gpu++) {
        int can = 0;
        if (gpu == c->gpu)
            continue;
        bool reaches = !c->driver.gpu_can_access(&can, c->gpu, gpu) && can;
        char *list = reaches ? yes : no;
        size_t used = strlen(list);
        snprintf(list + used, sizeof yes - used, " %d", gpu);
    }
    if (c->gpus == 1)
        report_find(r, "peer access", false,
                    "there is one GPU here; PEs that share it reach each other");
    else if (no[0])
        report_find(
            r, "peer access", false,
            "not to GPU%s: copies of the CPU's go there, kernels go through the proxy (nvidia-smi "
            "topo "
            "-p2p r says why; an IOMMU or ACS may be in the way)",
            no);
    else
        report_find(r, "peer access", true, "to GPU%s: kernels load and store there", yes);
}

static void find_order(const struct cuda *c, struct device_report *r)
{
    static const char *const texts[] = {
        [DEVICE_NIC_ORDERED] =
            "all GPUs of the machine see what NICs write here in its order: nothing is flushed",
        [DEVICE_NIC_FLUSHED] =
            ("GPUs may see a signal before the data that a NIC has written: waits, barriers and "
             "gets flush it (GSHMEM_CUDA_FLUSH)"),
        [DEVICE_NIC_UNORDERED] =
            ("GPUs may see a signal before the data that a NIC has written, and this driver "
             "flushes nothing: NICs do not write here"),
    };

    r->nic_order = cuda_nic_order(c);
    report_find(r, "NIC writes", r->nic_order == DEVICE_NIC_ORDERED, "%s", texts[r->nic_order]);
}

static void find_rest(const struct cuda *c, struct device_report *r)
{
    bool multicast = cuda_has(c, CUDA_ATTRIBUTE_MULTICAST);
    bool known = cuda_driver_has(&c->driver, CUDA_NEWER_MULTICAST);

    report_find(
        r, "multicast", multicast && known && c->config.multicast, "%s",
        !known ? "this driver knows none: update it to one for CUDA 12.1 or newer"
        : !multicast
            ? "no NVSwitch with multicast (sm_90 or newer; is the fabric manager running?): "
              "collectives store to each PE"
        : c->config.multicast
            ? "for teams of PEs on GPUs of their own (GSHMEM_CUDA_MULTICAST=off: not)"
            : "GSHMEM_CUDA_MULTICAST=off");
    r->dma_buf =
        cuda_has(c, CUDA_ATTRIBUTE_DMA_BUF) && cuda_driver_has(&c->driver, CUDA_NEWER_EXPORT);
    report_find(r, "dma-buf", r->dma_buf, "%s",
                r->dma_buf
                    ? "NICs can be given this GPU's memory"
                    : "not exported (it takes the driver's open kernel modules, and CUDA 11.7)");
    find_order(c, r);
    if (!cuda_has(c, CUDA_ATTRIBUTE_REGISTERED_IN_PLACE))
        report_find(
            r, "host buffers", false,
            "kernels do not see registered host memory at its own address: pass them memory of "
            "cudaMallocHost");
}

void cuda_report(const struct device_config *config, struct device_report *r)
{
    struct cuda c = {.config = *config};
    char why[300];

    *r = (struct device_report){.n = 0};
    if (!cuda_driver_open(&c.driver, why, sizeof why))
        return;
    if (cuda_find_gpu_for(&c.driver, config, &c.gpus, &c.gpu, why, sizeof why)) {
        if (c.driver.gpu_pci(r->pci, sizeof r->pci, c.gpu))
            r->pci[0] = 0;
        find_share(&c, r);
        find_peers(&c, r);
        find_rest(&c, r);
    }
    cuda_driver_close(&c.driver);
}
