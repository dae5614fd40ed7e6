#define _GNU_SOURCE
#include "drive.h"

#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"

struct bootstrap_request drive_request(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    return (struct bootstrap_request){.size = sizeof(struct bootstrap_request),
                                      .fail = fail,
                                      .info = log_info_bootstrap,
                                      .timeout_seconds =
                                          (int)settings_number(SETTING_INIT_TIMEOUT)};
}

/* A blob that nobody else publishes in any round, and every byte of which can be checked. */
static size_t make_blob(unsigned char *blob, int pe, int round)
{
    static const size_t sizes[] = {BOOTSTRAP_BLOB_MAX, 1, 64, 255};
    size_t bytes = sizes[(size_t)(pe + round) % (sizeof sizes / sizeof sizes[0])];

    for (size_t i = 0; i < bytes; i++)
        blob[i] = (unsigned char)((unsigned)pe * 31u + (unsigned)round * 7u + i);
    return bytes;
}

static void check_blob(struct bootstrap *b, int pe, int round, size_t expected_bytes,
                       const unsigned char *expected)
{
    unsigned char got[BOOTSTRAP_BLOB_MAX];
    size_t bytes = 999;

    CHECK_EQ(b->ops->fetch(b, pe, got, sizeof got, &bytes), GSHMEM_OK);
    if (bytes != expected_bytes || memcmp(got, expected, bytes) != 0)
        CHECK_FAIL("PE %d: blob of PE %d in round %d is wrong: %zu bytes, expected %zu", b->pe, pe,
                   round, bytes, expected_bytes);
}

void drive_rounds(struct bootstrap *b, int rounds)
{
    unsigned char blob[BOOTSTRAP_BLOB_MAX];

    for (int round = 0; round < rounds; round++) {
        CHECK_EQ(b->ops->publish(b, blob, make_blob(blob, b->pe, round)), GSHMEM_OK);
        CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
        for (int i = 0; i < b->n_pes; i++) {
            int pe = (b->pe + i) % b->n_pes;
            check_blob(b, pe, round, make_blob(blob, pe, round), blob);
        }
    }
    CHECK_EQ(b->ops->publish(b, blob, 0), GSHMEM_OK);
    CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
    check_blob(b, b->n_pes - 1, rounds, 0, blob);
}

void drive_hosts(struct bootstrap *b, int hosts)
{
    char(*name)[BOOTSTRAP_BLOB_MAX] = calloc((size_t)b->n_pes, sizeof *name);
    char self[65] = "";
    int seen = 0;
    size_t bytes;

    CHECK(name);
    gethostname(self, sizeof self - 1);
    CHECK_EQ(b->ops->publish(b, self, strlen(self)), GSHMEM_OK);
    CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
    for (int pe = 0; pe < b->n_pes; pe++) {
        CHECK_EQ(b->ops->fetch(b, pe, name[pe], sizeof *name - 1, &bytes), GSHMEM_OK);
        int first = 0; /* the lowest PE with that name */
        while (strcmp(name[first], name[pe]) != 0)
            first++;
        CHECK_EQ(b->host[pe], first == pe ? seen : b->host[first]);
        seen += first == pe;
    }
    CHECK_EQ(b->n_hosts, seen);
    if (hosts)
        CHECK_EQ(b->n_hosts, hosts);
    free(name);
}

static int drive_abort(struct bootstrap *b, int status)
{
    CHECK_EQ(b->ops->publish(b, "x", 1), GSHMEM_OK);
    CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
    if (b->pe == b->n_pes - 1) {
        b->ops->abort(b, status, "the test asks for it");
        /* A launcher has to end this PE, too, long before that; where there is none, it ends by
         * itself. */
        if (strcmp(b->ops->name, "uid") != 0)
            sleep(1000);
        _exit(strcmp(b->ops->name, "uid") == 0 ? status : 0);
    }
    /* A starter that ends the job kills us in here; one that cannot makes the fence fail. */
    CHECK_EQ(b->ops->publish(b, "y", 1), GSHMEM_OK);
    if (b->ops->fence(b) == GSHMEM_OK)
        printf("WRONG: the fence of a job that was ended succeeded\n");
    return 1;
}

/* The last PE dies only when a fence that does not wait for it has ended. */
static int drive_dead(struct bootstrap *b)
{
    if (b->pe == b->n_pes - 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    CHECK_EQ(b->ops->publish(b, "x", 1), GSHMEM_OK);
    /* A starter that ends the job kills us in here. */
    printf("PE %d: the fence without PE %d has %s\n", b->pe, b->n_pes - 1,
           b->ops->fence(b) == GSHMEM_OK ? "SUCCEEDED" : "failed");
    fflush(stdout);
    b->ops->close(b);
    return 1;
}

int drive(struct bootstrap *b, int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "rounds";
    int number = argc > 1 ? atoi(argv[1]) : 0;

    CHECK(b->n_pes >= 1 && b->pe >= 0 && b->pe < b->n_pes);
    log_identify(b->pe);
    if (strcmp(what, "abort") == 0)
        return drive_abort(b, number);
    if (strcmp(what, "absent") == 0 && b->pe == b->n_pes - 1) {
        sleep(1000); /* until the job is ended */
        return 0;
    }
    if (strcmp(what, "dead") == 0)
        return drive_dead(b);
    if (strcmp(what, "die") == 0)
        raise(SIGKILL);
    if (strcmp(what, "conform") == 0)
        drive_conform(b);
    drive_rounds(b, 5);
    drive_hosts(b, number);
    if (strcmp(what, "leave") == 0 && b->pe != 0)
        usleep(300000); /* PE 0 has left by then; what the last fence brought is still here */
    if (strcmp(what, "leave") == 0) {
        char name[BOOTSTRAP_BLOB_MAX];
        size_t bytes = 0;
        CHECK_EQ(b->ops->fetch(b, b->n_pes - 1, name, sizeof name, &bytes), GSHMEM_OK);
        CHECK(bytes > 0);
    }
    b->ops->close(b);
    return 0;
}
