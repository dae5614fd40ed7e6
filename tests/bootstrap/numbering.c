/* Hosts are numbered by their lowest PEs, whatever they are called. */
#include "bootstrap/hosts.h"

#include "check.h"

static void check(const int *got, const int *expected, int n)
{
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(got[pe], expected[pe]);
}

int main(void)
{
    const char *const names[] = {"zeta", "alpha", "zeta", "", "alpha", "zeta1"};
    int host[6], number[6] = {7, 3, 7, 0, 3, 8};

    CHECK_EQ(hosts_by_name(names, 6, host), 4);
    check(host, (int[]){0, 1, 0, 2, 1, 3}, 6);
    CHECK_EQ(hosts_by_number(number, 9, 6, number), 4);
    check(number, (int[]){0, 1, 0, 2, 1, 3}, 6);
    CHECK_EQ(hosts_by_name(names, 1, host), 1);
    CHECK_EQ(host[0], 0);
    return 0;
}
