/* Whether this PE's GPU is in an NVLink domain that spans nodes, and which: NVIDIA's management
 * library knows it, and whether memory can go to the others of the domain the driver says when it
 * is asked for. */
#include "device/cuda/memory.h"

#include <dlfcn.h>
#include <string.h>

/* The part of libnvidia-ml.so.1 that is called, as its documentation gives it. */
enum { MANAGEMENT_OK = 0, FABRIC_COMPLETED = 3 };

struct fabric_info {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

struct management {
    void *library;
    int (*start)(void);
    int (*stop)(void);
    int (*find)(const char *pci, void **gpu);
    int (*fabric)(void *gpu, struct fabric_info *info);
};

static bool find_entry(const struct management *m, const char *symbol, void *entry)
{
    void *found = dlsym(m->library, symbol);

    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

static bool open_management(struct management *m)
{
    if (!(m->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)))
        return false;
    if (find_entry(m, "nvmlInit_v2", &m->start) && find_entry(m, "nvmlShutdown", &m->stop) &&
        find_entry(m, "nvmlDeviceGetHandleByPciBusId_v2", &m->find) &&
        find_entry(m, "nvmlDeviceGetGpuFabricInfo", &m->fabric) && m->start() == MANAGEMENT_OK)
        return true;
    dlclose(m->library);
    return false;
}

/* A GPU that is alone with its node's has no domain, or one without a name. */
static bool domain_ask(const struct cuda *c, struct fabric_info *info)
{
    static const unsigned char none[sizeof info->cluster];
    struct management m;
    char pci[20] = "";
    void *gpu;

    if (c->driver.gpu_pci(pci, sizeof pci, c->gpu) || !open_management(&m))
        return false;
    bool known = m.find(pci, &gpu) == MANAGEMENT_OK && m.fabric(gpu, info) == MANAGEMENT_OK;
    m.stop();
    dlclose(m.library);
    if (!known || memcmp(info->cluster, none, sizeof none) == 0)
        return false;
    if (info->state == FABRIC_COMPLETED && info->status == MANAGEMENT_OK)
        return true;
    c->config.info(
        "cuda: GPU %d belongs to an NVLink domain and has not joined it (state %d, status %d): the "
        "network reaches PEs of other nodes",
        c->gpu, info->state, info->status);
    return false;
}

/* A driver can offer fabric handles and refuse to give one: where the IMEX service does not run, or
 * this process has been given no channel of it. */
static bool try_handle(struct cuda *c)
{
    const struct cuda_allocation what = cuda_allocation_of(c);
    unsigned char handle[64];
    cuda_result result;
    cuda_piece piece;
    size_t step = 0;

    if (!(result = c->driver.granularity(&step, &what, CUDA_GRANULARITY_MINIMUM)) &&
        !(result = c->driver.create(&piece, step, &what, 0))) {
        result = c->driver.export_piece(handle, piece, CUDA_HANDLE_FABRIC, 0);
        c->driver.release(piece);
    }
    if (result)
        c->config.info("cuda: GPU %d is in an NVLink domain, and its memory cannot go there (do "
                       "the IMEX service "
                       "and its channels, /dev/nvidia-caps-imex-channels, exist here?): %s",
                       c->gpu, cuda_error(&c->driver, result).text);
    return !result;
}

void cuda_find_domain(struct cuda *c)
{
    struct fabric_info info = {.status = 0};

    if (!c->config.domain || c->share == SHARE_IPC || !cuda_has(c, CUDA_ATTRIBUTE_VMM) ||
        !cuda_has(c, CUDA_ATTRIBUTE_FABRIC) || !domain_ask(c, &info))
        return;
    c->domain.member = true;
    if (cuda_enter(c))
        return;
    c->domain.member = try_handle(c);
    cuda_leave(c);
    if (!c->domain.member)
        return;
    memcpy(c->domain.uuid, info.cluster, sizeof c->domain.uuid);
    c->domain.clique = info.clique;
    c->config.info("cuda: GPU %d is in clique %u of an NVLink domain: PEs of other nodes there can "
                   "map its heap",
                   c->gpu, info.clique);
}
