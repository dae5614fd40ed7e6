/* The smallest job: starts the library, says hello, ends it. With the argument "memory" each PE
 * says what the library's start made of its memory instead, in KiB: its own pages of any kind, its
 * share of all (Pss), and everything resident. */
#include <stdio.h>
#include <string.h>

#include <library.h>

static long field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    long kib = 0;

    return at && sscanf(at + strlen(name), "%ld", &kib) == 1 ? kib : 0;
}

static int print_memory(void)
{
    static char text[4096];
    FILE *f = fopen("/proc/self/smaps_rollup", "r");

    if (!f) {
        perror("hello: /proc/self/smaps_rollup");
        return 1;
    }
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    printf("memory %d private %ld pss %ld rss %ld\n", lib_my_pe(),
           field(text, "\nPrivate_Clean:") + field(text, "\nPrivate_Dirty:"), field(text, "\nPss:"),
           field(text, "\nRss:"));
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;

    if (lib_init() != 0)
        return 1;
    if (argc > 1 && !strcmp(argv[1], "memory"))
        status = print_memory();
    else
        printf("hello from PE %d of %d\n", lib_my_pe(), lib_n_pes());
    lib_finalize();
    return status;
}
