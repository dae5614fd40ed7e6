/* Whether a process is stopped, as by SIGSTOP. To be included after check.h. */
#include <stdio.h>

static int is_stopped(long pid)
{
    char path[40], state = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    CHECK(f);
    CHECK_EQ(fscanf(f, "%*d %*s %c", &state), 1);
    fclose(f);
    return state == 'T';
}
