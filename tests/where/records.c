/* Each wait in a kernel has a record of its own, also where the text of one begins with all of another's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"
#include "gshmem/device/state.h"

#include "check.h"

static char report[8192];

static void ask(void)
{
    char command[512];

    snprintf(command, sizeof command, "%s/runtime/where/gshmem-where %d 2>&1",
             getenv("GSHMEM_TEST_BUILD"), (int)getpid());
    FILE *from = popen(command, "r");
    CHECK(from);
    report[fread(report, 1, sizeof report - 1, from)] = 0;
    pclose(from);
}

static void show(const char *where)
{
    gshmem_device_show_wait(GSHMEM_SHOWN_PROXY | GSHMEM_SHOWN_FIRST, NULL, where);
}

int main(void)
{
    CHECK_OK(gshmem_init());
    /* A wait is shown for some seconds after its last sign of life, and an answer may be late. */
    for (int i = 0; i < 60 && !(strstr(report, "team 12") && strstr(report, "team 1 (")); i++) {
        show("round 5 of team 12");
        show("round 5 of team 1");
        ask();
    }
    CHECK_HAS(report, "round 5 of team 12");
    CHECK_HAS(report, "round 5 of team 1 (");
    CHECK_OK(gshmem_finalize());
    return 0;
}
