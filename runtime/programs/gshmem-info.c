/* gshmem-info: what is here, what GSHMEM would choose, and why. */
#include <stdio.h>
#include <string.h>

#include "runtime/info.h"

static const char usage[] =
    "usage: gshmem-info [--settings | --version | --help]\n"
    "  Without an option: how a job started here would find its PEs, and what this machine offers.\n"
    "  Run it under a launcher (mpirun -n 1 gshmem-info) to see what GSHMEM finds there.\n"
    "  --settings   every GSHMEM_… variable, its value, range and meaning\n";

int main(int argc, char **argv)
{
    if (argc == 1)
        return gshmem_info_print(stdout);
    if (argc == 2 && strcmp(argv[1], "--settings") == 0)
        return gshmem_info_print_settings(stdout);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("gshmem-info " GSHMEM_VERSION_TEXT);
        return 0;
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    fprintf(stderr, "gshmem-info: unknown argument %s\n%s", argv[1], usage);
    return 2;
}
