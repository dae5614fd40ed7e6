#define _GNU_SOURCE
#include "runtime/tools/info.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/choose.h"
#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/nvshmem_settings.h"
#include "runtime/base/settings.h"
#include "runtime/greet.h"
#include "runtime/node/choose_device.h"
#include "runtime/node/node.h"
#include "runtime/memory/data.h"
#include "runtime/network/network.h"
#include "runtime/node/nics.h"
#include "shmem.h"
#include "runtime/network/preflight.h"
#include "runtime/tools/topology.h"
#include "transport/transport.h"

static const char *found_name(enum bootstrap_found found)
{
    switch (found) {
    case BOOTSTRAP_PRESENT:
        return "yes";
    case BOOTSTRAP_BROKEN:
        return "BROKEN";
    case BOOTSTRAP_ABSENT:
        break;
    }
    return "no";
}

static void print_bootstraps(FILE *to)
{
    struct bootstrap_report reports[16];
    size_t n = bootstrap_survey(reports, sizeof reports / sizeof reports[0]);
    const char *asked = settings_string(SETTING_BOOTSTRAP);
    bool any = strcmp(asked, "auto") == 0, taken = false;

    fprintf(to, "\nStart-up (the first that is not \"no\" is used; GSHMEM_BOOTSTRAP chooses)\n");
    for (size_t i = 0; i < n; i++) {
        bool present = reports[i].found == BOOTSTRAP_PRESENT;
        bool use = any ? !taken && reports[i].found != BOOTSTRAP_ABSENT
                       : strcmp(asked, reports[i].name) == 0;
        taken |= use;
        fprintf(to, "  %-8s %-7s %s%s\n", reports[i].name, found_name(reports[i].found),
                reports[i].why,
                !use      ? ""
                : present ? "  <- used"
                          : "  <- gshmem_init fails by this");
    }
    if (!taken)
        fprintf(to, "  %s  <- asked for\n", asked);
}

/* The first line of a small file, without its end; "" if it cannot be read. */
static void read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");

    line[0] = 0;
    if (!f)
        return;
    if (!fgets(line, (int)size, f))
        line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    fclose(f);
}

static void print_limit(FILE *to, const char *name, int resource, const char *advice)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    fprintf(to, "  %-14s %llu KiB: %s\n", name, (unsigned long long)limit.rlim_cur >> 10, advice);
}

static void print_memory(FILE *to)
{
    static const char *const huge = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    struct data_segments data;
    char line[128];
    cpu_set_t mask;

    fprintf(to, "\nThis machine\n");
    if (sched_getaffinity(0, sizeof mask, &mask) == 0)
        fprintf(to, "  %-14s %d of %ld\n", "CPUs", CPU_COUNT(&mask), sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(to, "  %-14s %llu MiB\n", "memory",
            (unsigned long long)sysconf(_SC_PHYS_PAGES) *
                    (unsigned long long)sysconf(_SC_PAGESIZE) >>
                20);
    read_line(huge, line, sizeof line);
    fprintf(to, "  %-14s %s%s\n", "huge pages", line[0] ? line : "not offered",
            strstr(line, "[never]") ? ": the heap gets none; echo advise into the file above" : "");
    print_limit(to, "ulimit -v", RLIMIT_AS,
                "heaps of all PEs of a node must fit (GSHMEM_HEAP_MAX)");
    print_limit(to, "ulimit -f", RLIMIT_FSIZE,
                "heaps of all PEs of a node must fit (GSHMEM_HEAP_MAX)");
    if (!data_find(&data))
        fprintf(to, "  %-14s %d segments, %zu KiB, in this program\n", "symmetric data", data.n,
                data.bytes >> 10);
}

static void print_line(void *to, const char *name, const char *text)
{
    fprintf(to, "  %-14s %s\n", name, text);
}

static void print_transports(FILE *to)
{
    int64_t asked = settings_number(SETTING_TRANSPORT);
    char why[300];

    fprintf(to, "\nTransports\n");
    fprintf(to, "  %-8s yes     loads and stores to PEs of the same node  <- used\n", "mapped");
    bool usable = transport_tcp.usable(NULL, why, sizeof why);
    fprintf(to, "  %-8s %-7s %s%s\n", "tcp", usable ? "yes" : "no", why,
            usable ? "  <- used to PEs of other nodes" : "");
    transport_tcp.report(NULL, print_line, to);
    usable = network_verbs_usable(why, sizeof why);
    fprintf(to, "  %-8s %-7s %s%s\n", "verbs", usable ? "yes" : "no", why,
            !usable                    ? ""
            : asked == CHOICE_TRANSPORT_TCP ? "  (GSHMEM_TRANSPORT=auto takes it)"
                                          : "  <- used, where the other has such a NIC too");
}

static void print_rdma(FILE *to)
{
    bool privileged;

    fprintf(to, "\nRDMA (GSHMEM_IB_HCA and GSHMEM_IB_PORT choose)\n");
    if (preflight_devices("/sys", "/dev", print_line, to) == 0) {
        print_line(to, "none", "this machine shows no RDMA device (/sys/class/infiniband)");
        return;
    }
    network_verbs_report(print_line, to);
    uint64_t limit = preflight_limit(&privileged);
    preflight_memory(limit, privileged, print_line, to);
}

/* As a program would find them that has kernels for them. */
static void print_devices(FILE *to)
{
    struct device_config config = device_config_of(0, false);
    char why[400];
    const struct device_ops *cuda = device_find_cuda(why, sizeof why);
    bool usable = cuda && cuda->usable(&config, why, sizeof why);
    const char *asked = settings_string(SETTING_DEVICE);
    bool never = strcmp(asked, "host") == 0, always = strcmp(asked, "cuda") == 0;

    fprintf(to, "\nDevices (GSHMEM_DEVICE=%s)\n", asked);
    fprintf(to, "  %-8s %-7s %s%s\n", "cuda", usable ? "yes" : "no", why,
            never     ? ""
            : always  ? "  <- asked for"
            : usable  ? "  <- used by programs with kernels for GPUs"
                      : "");
    fprintf(to, "  %-8s yes     memory and kernels on the CPU%s\n", "host",
            always ? "" : "  <- used");
}

static void print_findings(FILE *to, const struct device_report *r)
{
    for (int i = 0; i < r->n; i++)
        fprintf(to, "  %-14s %-3s %s\n", r->finding[i].name, r->finding[i].has ? "yes" : "no",
                r->finding[i].text);
}

/* Those that a NIC's driver could use; TCP takes what the system's routes say, or GSHMEM_TCP_IF. */
static void print_nics(FILE *to, const char *pci)
{
    struct nic nics[NICS_MOST];
    int n = nics_survey("/sys", pci, nics, NICS_MOST);

    fprintf(to, "\nNetwork cards%s%s%s\n", pci[0] ? " (nearest to GPU " : "", pci,
            pci[0] ? " first; GSHMEM_TCP_IF chooses)" : " (GSHMEM_TCP_IF chooses)");
    for (int i = 0; i < n; i++)
        fprintf(to, "  %-14s %-8s %-12s  %s\n", nics[i].interface[0] ? nics[i].interface : "-",
                nics[i].rdma[0] ? nics[i].rdma : "no RDMA", nics[i].pci,
                nics_distance_text(nics[i].distance));
    if (n == 0)
        fprintf(to, "  none\n");
}

/* Of the GPU that a program would take, if there is one. */
static void print_gpu(FILE *to)
{
    struct device_config config = device_config_of(0, false);
    struct device_report r = {.n = 0};
    char why[400];
    const struct device_ops *cuda = device_find_cuda(why, sizeof why);
    bool usable = cuda && cuda->usable(&config, why, sizeof why);

    if (usable) {
        cuda->report(&config, &r);
        enum nic_way way = device_nic_way(&r, why, sizeof why);
        fprintf(to, "\nThis GPU\n");
        print_findings(to, &r);
        fprintf(to, "  %-14s %s: %s\n", "for NICs", nics_way_name(way), why);
    }
    print_nics(to, r.pci);
}

static void print_openshmem(FILE *to)
{
    fprintf(to, "\nOpenSHMEM\n");
    fprintf(to, "  %-14s %d.%d, with what it has deprecated\n", "specification",
            SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    fprintf(to, "  %-14s C99, C11 generics, C++11; pshmem.h for tools\n", "bindings");
    fprintf(to, "  %-14s up to SHMEM_THREAD_MULTIPLE\n", "threads");
    fprintf(to, "  %-14s oshcc, oshc++ (gshmemcc, gshmemc++), oshrun (gshmemrun)\n", "programs");
    fprintf(to, "  %-14s SHMEM_SYMMETRIC_SIZE, SHMEM_VERSION, SHMEM_INFO, SHMEM_DEBUG\n",
            "environment");
}

int gshmem_info_print(FILE *to)
{
    char name[64];

    if (settings_load())
        return 1;
    gshmem_info_get_name(name);
    fprintf(to, "%s\n", name);
    print_bootstraps(to);
    print_memory(to);
    print_devices(to);
    print_gpu(to);
    print_transports(to);
    print_rdma(to);
    print_openshmem(to);
    fprintf(to, "\nSettings: gshmem-info --settings\n");
    return 0;
}

int gshmem_info_print_topology(FILE *to, const char *sys, int pes, const char *svg)
{
    struct topology *t = settings_load() ? NULL : malloc(sizeof *t);
    int status = 1;

    if (!t)
        return status;
    topology_read(t, sys, pes);
    topology_print(to, t);
    FILE *picture = svg ? fopen(svg, "we") : NULL;
    if (picture)
        topology_draw(picture, t);
    if (!svg || (picture && !ferror(picture)))
        status = 0;
    if (picture && fclose(picture) != 0)
        status = 1;
    if (status)
        fprintf(stderr, "gshmem-info: writing %s: %s\n", svg, strerror(errno));
    free(t);
    return status;
}

int gshmem_info_print_nvshmem(FILE *to)
{
    nvshmem_settings_print(to);
    return 0;
}

int gshmem_info_print_settings(FILE *to, const char *pattern)
{
    gshmem_status_t status = settings_load();

    if (settings_print(to, pattern, greet_automatic) == 0) {
        fprintf(stderr, "gshmem-info: no setting has \"%s\" in its name or description\n", pattern);
        return 1;
    }
    settings_warn_unknown();
    nvshmem_settings_warn();
    return status ? 1 : 0;
}
