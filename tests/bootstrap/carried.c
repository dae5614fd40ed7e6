/* A PE of a job with a unique id, which the program carries through a file. Any launcher can start
 * it: it takes no more than its number from it.
 *
 *     carried FILE rounds|abort|leave|absent [NUMBER] */
#include "gshmem.h"

#include <unistd.h>

#include "check.h"
#include "drive.h"

/* The number that the launcher has put into the first of these variables. */
static int number(const char *const *variable)
{
    for (; *variable; variable++) {
        if (getenv(*variable))
            return atoi(getenv(*variable));
    }
    CHECK_FAIL("no launcher has started this");
}

static void carry_out(const char *path, const gshmem_uniqueid_t *uid)
{
    char unfinished[4096];

    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    FILE *f = fopen(unfinished, "wb");
    CHECK(f && fwrite(uid, sizeof *uid, 1, f) == 1);
    CHECK_EQ(fclose(f), 0);
    CHECK_EQ(rename(unfinished, path), 0);
}

static void carry_in(const char *path, gshmem_uniqueid_t *uid)
{
    FILE *f;

    while (!(f = fopen(path, "rb")))
        usleep(10000);
    CHECK_EQ(fread(uid, sizeof *uid, 1, f), 1);
    fclose(f);
}

int main(int argc, char **argv)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;
    gshmem_uniqueid_t uid;

    CHECK(argc > 1);
    request.pe = number(ranks);
    request.n_pes = number(sizes);
    request.uid = &uid;
    if (request.pe == 0) {
        CHECK_OK(gshmem_get_uniqueid(&uid));
        carry_out(argv[1], &uid);
    } else {
        carry_in(argv[1], &uid);
    }
    if (bootstrap_open(&request, &b) != GSHMEM_OK)
        return 3;
    CHECK_STR(b->ops->name, "uid");
    return drive(b, argc - 2, argv + 2);
}
