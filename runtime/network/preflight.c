#define _GNU_SOURCE
#include "runtime/network/preflight.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* With a lower limit, heaps cannot be registered with NICs; the system's default is 64 KiB or 8
 * MiB. */
#define PINNED_LEAST (256ull << 20)

/* ---- Files ---- */

__attribute__((format(printf, 2, 3))) static bool path_of(char path[PATH_MAX], const char *format,
                                                          ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(path, PATH_MAX, format, args);
    va_end(args);
    return n >= 0 && n < PATH_MAX;
}

static bool preflight_exists(const char *sys, const char *what, const char *name)
{
    char path[PATH_MAX];

    return path_of(path, "%s/%s/%s", sys, what, name) && access(path, F_OK) == 0;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The entries of a class of devices, which the caller frees; returns how many. */
static int list(const char *sys, const char *class, struct dirent ***entries)
{
    char path[PATH_MAX];
    int n =
        path_of(path, "%s/class/%s", sys, class) ? scandir(path, entries, visible, alphasort) : -1;

    if (n < 0)
        *entries = NULL;
    return n < 0 ? 0 : n;
}

static void list_free(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
}

/* ---- Devices ---- */

/* Cards whose drivers have two parts: the second one is for RDMA, and may not be installed. */
static void look_for_drivers(const char *sys, preflight_line *line, void *to)
{
    static const char *const pairs[][2] = {
        {"mlx5_core", "mlx5_ib"}, {"mlx4_core", "mlx4_ib"}, {"bnxt_en", "bnxt_re"},
        {"ice", "irdma"},         {"i40e", "irdma"},        {"cxgb4", "iw_cxgb4"},
        {"qede", "qedr"},         {"hns3", "hns_roce_hw_v2"}, {"mana", "mana_ib"},
    };
    char text[120];

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (!preflight_exists(sys, "module", pairs[i][0]) ||
            preflight_exists(sys, "module", pairs[i][1]))
            continue;
        snprintf(text, sizeof text, "driver %s is loaded, its part for RDMA is not: modprobe %s",
                 pairs[i][0], pairs[i][1]);
        line(to, "driver", text);
    }
}

/* The device that a uverbs file is for. */
static bool is_for(const char *sys, const char *uverbs, const char *device)
{
    char path[PATH_MAX], name[64] = "";
    FILE *f =
        path_of(path, "%s/class/infiniband_verbs/%s/ibdev", sys, uverbs) ? fopen(path, "re") : NULL;
    bool is = f && fscanf(f, "%63s", name) == 1 && strcmp(name, device) == 0;

    if (f)
        fclose(f);
    return is;
}

/* Checks the file that a program opens to use the device. */
static void look_at_file(const char *dev, const char *uverbs, const char *device,
                         preflight_line *line, void *to)
{
    char path[PATH_MAX], text[PATH_MAX + 200];

    if (!path_of(path, "%s/infiniband/%s", dev, uverbs) || access(path, R_OK | W_OK) == 0)
        return;
    if (errno == ENOENT)
        snprintf(text, sizeof text, "%s is not there: in a container, start it with "
                                    "--device=/dev/infiniband; else see that udev runs", path);
    else
        snprintf(text, sizeof text,
                 "%s: %s: this user needs to read and write it (chmod 0666, or udev's "
                 "rules of package rdma-core)",
                 path, strerror(errno));
    line(to, device, text);
}

static void look_at_device(const char *sys, const char *dev, const char *device,
                           preflight_line *line, void *to)
{
    struct dirent **uverbs;
    int n = list(sys, "infiniband_verbs", &uverbs), found = 0;

    for (int i = 0; i < n; i++) {
        if (!is_for(sys, uverbs[i]->d_name, device))
            continue;
        found++;
        look_at_file(dev, uverbs[i]->d_name, device, line, to);
    }
    list_free(uverbs, n);
    if (!found)
        line(to, device,
             "programs cannot reach it, as module ib_uverbs is not loaded: modprobe ib_uverbs");
}

int preflight_devices(const char *sys, const char *dev, preflight_line *line, void *to)
{
    struct dirent **devices;
    int n = list(sys, "infiniband", &devices);

    for (int i = 0; i < n; i++)
        look_at_device(sys, dev, devices[i]->d_name, line, to);
    list_free(devices, n);
    look_for_drivers(sys, line, to);
    return n;
}

/* ---- Memory ---- */

/* CAP_IPC_LOCK, which the kernel tests. */
static bool may_pin_all(void)
{
    enum { CAP_IPC_LOCK = 14 };
    char text[200];
    uint64_t effective = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(text, sizeof text, f)) {
        if (sscanf(text, "CapEff: %" SCNx64, &effective) == 1)
            break;
    }
    if (f)
        fclose(f);
    return effective >> CAP_IPC_LOCK & 1;
}

uint64_t preflight_limit(bool *privileged)
{
    struct rlimit limit;

    *privileged = may_pin_all();
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

void preflight_memory(uint64_t limit, bool privileged, preflight_line *line, void *to)
{
    char text[300];

    if (limit == UINT64_MAX || privileged)
        snprintf(text, sizeof text, "all of it%s",
                 limit == UINT64_MAX
                     ? ""
                     : " (this process is privileged; ulimit -l holds others to less)");
    else
        snprintf(
            text, sizeof text, "%" PRIu64 " KiB%s", limit >> 10,
            limit < PINNED_LEAST
                ? ": too little for what NICs are to reach; raise ulimit -l for users (memlock in "
                  "/etc/security/limits.d) and for the daemon that starts jobs (systemd: "
                  "LimitMEMLOCK=infinity)"
                : "; heaps that NICs are to reach must fit (ulimit -l)");
    line(to, "may be pinned", text);
}
