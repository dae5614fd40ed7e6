/* The simulated management library, libnvidia-ml.so.1: in which NVLink domain the (simulated) GPUs are. It
 * reads the same environment as the simulated driver (sim.h). */
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { OK = 0, NOT_SUPPORTED = 3, COMPLETED = 3, IN_PROGRESS = 2 };

struct fabric_info {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

API int nvmlInit_v2(void);
API int nvmlShutdown(void);
API int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **gpu);
API int nvmlDeviceGetGpuFabricInfo(void *gpu, struct fabric_info *info);

static int started;

int nvmlInit_v2(void)
{
    started++;
    return OK;
}

int nvmlShutdown(void)
{
    return started-- > 0 ? OK : 1;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **gpu)
{
    if (!started || strncmp(pci, "0000:A", 6) != 0)
        return 1;
    *gpu = &started;
    return OK;
}

static unsigned clique(void)
{
    const char *pe = getenv("GSHMEM_RUN_PE"), *list = getenv("SIM_CLIQUES");

    for (int i = pe ? atoi(pe) : 0; list && i > 0; i--) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return list ? (unsigned)atoi(list) : 0;
}

int nvmlDeviceGetGpuFabricInfo(void *gpu, struct fabric_info *info)
{
    const char *name = getenv("SIM_DOMAIN"), *joined = getenv("SIM_JOINED");

    if (!started || gpu != &started || !name)
        return NOT_SUPPORTED;
    memset(info, 0, sizeof *info);
    info->cluster[15] = (unsigned char)*name;
    info->clique = clique();
    info->state = joined && atoi(joined) == 0 ? IN_PROGRESS : COMPLETED;
    return OK;
}
