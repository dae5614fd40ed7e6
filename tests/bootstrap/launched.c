/* A PE of a job that some launcher starts: finds it as gshmem_init would, and drives it.
 *
 *     launched STARTER rounds|abort|leave|absent [NUMBER]
 *
 * STARTER is the bootstrap that must be found, or "twice:STARTER" to close and open it again. */
#include "drive.h"

#include "check.h"

int main(int argc, char **argv)
{
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;
    const char *starter = argc > 1 ? argv[1] : "single";

    if (strncmp(starter, "twice:", 6) == 0) {
        starter += 6;
        CHECK_EQ(bootstrap_open(&request, &b), GSHMEM_OK);
        drive_rounds(b, 1);
        b->ops->close(b);
    }
    if (bootstrap_open(&request, &b) != GSHMEM_OK)
        return 3;
    CHECK_STR(b->ops->name, starter);
    return drive(b, argc - 2, argv + 2);
}
