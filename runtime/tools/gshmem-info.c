/* gshmem-info: what is here, what GSHMEM would choose, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tools/info.h"
#include "runtime/base/printed.h"

static const char usage[] =
    "usage: gshmem-info [--settings [PATTERN] | --topology [--pes N] [--svg FILE]\n"
    "                    | --nvshmem-settings | --version | --help]\n"
    "  Without an option: how a job started here would find its PEs, and what this machine "
    "offers.\n"
    "  Run it under a launcher (mpirun -n 1 gshmem-info) to see what GSHMEM finds there.\n"
    "  --settings   every GSHMEM_… variable, its value, range and meaning; or those that have "
    "PATTERN\n"
    "               in their name or meaning: --settings heap, --settings 'ib*gpu'\n"
    "  --topology   CPUs, NUMA nodes, GPUs, NICs and their distances, and which of N PEs of a\n"
    "               node takes which; --svg FILE: as a picture, too; --sys FOLDER: of another\n"
    "               machine, of whose /sys FOLDER is a copy\n"
    "  --nvshmem-settings   which NVSHMEM_… variables mean something here, and which do not\n";

static int gshmem_info_finish(int status)
{
    return printed("gshmem-info", status);
}

static int gshmem_info_topology(int argc, char **argv)
{
    const char *sys = "/sys", *svg = NULL;
    long pes = 0;

    for (int i = 0; i < argc; i += 2) {
        char *end = "";
        if (i + 1 < argc && strcmp(argv[i], "--pes") == 0)
            pes = strtol(argv[i + 1], &end, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--svg") == 0)
            svg = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--sys") == 0)
            sys = argv[i + 1];
        else
            end = NULL;
        if (!end || *end || pes < 0 || pes > 1024 ||
            (strcmp(argv[i], "--pes") == 0 && (pes == 0 || end == argv[i + 1]))) {
            fprintf(stderr, "gshmem-info: --topology takes --pes 1..1024, --svg FILE and --sys "
                            "FOLDER, and not %s\n%s", argv[i], usage);
            return 2;
        }
    }
    return gshmem_info_finish(gshmem_info_print_topology(stdout, sys, (int)pes, svg));
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return gshmem_info_finish(gshmem_info_print(stdout));
    if ((argc == 2 || argc == 3) && strcmp(argv[1], "--settings") == 0)
        return gshmem_info_finish(gshmem_info_print_settings(stdout, argv[2]));
    if (argc >= 2 && strcmp(argv[1], "--topology") == 0)
        return gshmem_info_topology(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], "--nvshmem-settings") == 0)
        return gshmem_info_finish(gshmem_info_print_nvshmem(stdout));
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("gshmem-info " GSHMEM_VERSION_TEXT);
        return gshmem_info_finish(0);
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return gshmem_info_finish(0);
    }
    fprintf(stderr, "gshmem-info: unknown argument %s\n%s", argv[1], usage);
    return 2;
}
