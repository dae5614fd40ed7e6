/* Hosts are numbered by their lowest PEs, whatever they are called. */
#define _GNU_SOURCE
#include "bootstrap/nodes.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static void check(const int *got, const int *expected, int n)
{
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(got[pe], expected[pe]);
}

/* Names that may have been cut are not taken for the whole of what a host is. */
static void check_own_name(void)
{
    char name[65], own[NODES_NAME_BYTES];

    for (size_t n = 62; n <= 64 && unshare(CLONE_NEWUTS) == 0; n++) { /* which takes root */
        memset(name, 'h', n);
        name[n] = 0;
        CHECK_EQ(sethostname(name, n), 0);
        nodes_own_name(own);
        CHECK_EQ(strncmp(own, name, n), 0);
        CHECK_EQ(own[n], n < 63 ? 0 : '#');
        CHECK_EQ(strlen(own + n), n < 63 ? 0 : 24);
    }
}

int main(void)
{
    const char *const names[] = {"zeta", "alpha", "zeta", "", "alpha", "zeta1"};
    int host[6], number[6] = {7, 3, 7, 0, 3, 8};

    CHECK_EQ(nodes_by_name(names, 6, host), 4);
    check(host, (int[]){0, 1, 0, 2, 1, 3}, 6);
    CHECK_EQ(nodes_by_number(number, 9, 6, number), 4);
    check(number, (int[]){0, 1, 0, 2, 1, 3}, 6);
    CHECK_EQ(nodes_by_name(names, 1, host), 1);
    CHECK_EQ(host[0], 0);
    check_own_name();
    return 0;
}
