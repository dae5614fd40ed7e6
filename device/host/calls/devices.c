/* How many devices a program sees, and which of them its threads have chosen.
 *
 * There is one, whatever its number. But a program for GPUs gives each PE of a node its own, and
 * ends where there are fewer: so there are as many numbers as the launcher says that this node has
 * PEs. */
#define _GNU_SOURCE
#include "device/host/calls/devices.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/nearest.h"
#include "device/host/blocks/workers.h"
#include "device/host/calling_thread.h"
#include "device/host/errors.h"
#include "runtime/base/settings.h"

static int count; /* of the process: set once, by count_devices() */

/* The first number of each, as launchers put it: SLURM's is "4(x2)". In the order in which
 * choose.c tries them, a launcher that is not the nearest left out. The last resort counts the
 * PEs of other nodes too. */
static int count_stated(void)
{
    static const struct {
        const char *variable;
        enum { RUN, PMIX, ANY } of;
    } by[] = {{"GSHMEM_RUN_NPES", RUN},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", PMIX},
              {"MPI_LOCALNRANKS", ANY},
              {"SLURM_STEP_TASKS_PER_NODE", ANY},
              {"PMI_SIZE", ANY}};

    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++) {
        const char *text = getenv(by[i].variable);
        long n = text ? strtol(text, NULL, 10) : 0;

        if ((by[i].of == RUN && !nearest_is_gshmemrun(environ)) ||
            (by[i].of == PMIX && nearest_is_pmi()))
            continue;
        if (n > 0 && n <= DEVICES_MAX)
            return (int)n;
    }
    return 1;
}

static void count_devices(void)
{
    struct capacity c;

    workers_start(&c); /* which reads the settings */
    count = (int)settings_number(SETTING_HOST_DEVICES);
    if (!count)
        count = count_stated();
}

bool device_exists(int device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, count_devices);
    return device >= 0 && device < count;
}

int device_current(void)
{
    return calling_thread.device;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    if (!n)
        return report_error(cudaErrorInvalidValue);
    device_exists(0);
    *n = count;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (!device_exists(device))
        return report_error(cudaErrorInvalidDevice);
    calling_thread.device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    if (!device)
        return report_error(cudaErrorInvalidValue);
    *device = calling_thread.device;
    return cudaSuccess;
}

/* All of a process's memory is in reach of all its devices; a device is no peer of itself. */
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!can)
        return report_error(cudaErrorInvalidValue);
    if (!device_exists(device) || !device_exists(peer))
        return report_error(cudaErrorInvalidDevice);
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    if (flags)
        return report_error(cudaErrorInvalidValue);
    return device_exists(peer) && peer != calling_thread.device ? cudaSuccess
                                                  : report_error(cudaErrorInvalidDevice);
}
