/* What every starter must do, on one PE of its job: bootstrap/bootstrap.h, sentence by sentence. */
#define _GNU_SOURCE
#include "drive.h"

#include <unistd.h>

#include "check.h"

enum { ROUNDS = 14 };

static size_t size_of(int pe, int round)
{
    static const size_t sizes[] = {0, 1, 7, 64, BOOTSTRAP_BLOB_MAX - 1, BOOTSTRAP_BLOB_MAX, 2};

    return sizes[(size_t)(3 * pe + round) % (sizeof sizes / sizeof sizes[0])];
}

/* Of any bytes, zeros and line ends too; nobody else's, and of no other round. */
static unsigned char byte_of(int pe, int round, size_t i)
{
    return (unsigned char)((unsigned)pe * 41u + (unsigned)round * 59u + (unsigned)i * 7u);
}

static void publish(struct bootstrap *b, int round)
{
    unsigned char blob[BOOTSTRAP_BLOB_MAX];
    const size_t bytes = size_of(b->pe, round);

    for (size_t i = 0; i < bytes; i++)
        blob[i] = byte_of(b->pe, round, i);
    CHECK_EQ(b->ops->publish(b, blob, bytes), GSHMEM_OK);
    memset(blob, 0xee, sizeof blob); /* it has been copied */
}

/* Into just as much room as it takes. */
static void check_blob(struct bootstrap *b, int pe, int round)
{
    const size_t expected = size_of(pe, round);
    unsigned char *blob = malloc(expected + 1);
    size_t bytes = 12345;

    CHECK(blob);
    blob[expected] = 0x5a;
    CHECK_EQ(b->ops->fetch(b, pe, blob, expected, &bytes), GSHMEM_OK);
    CHECK_EQ(bytes, expected);
    for (size_t i = 0; i < bytes; i++) {
        if (blob[i] != byte_of(pe, round, i))
            CHECK_FAIL("PE %d: byte %zu of PE %d's blob in round %d is %d", b->pe, i, pe, round,
                       blob[i]);
    }
    CHECK_EQ(blob[expected], 0x5a);
    free(blob);
}

/* What open has filled in. */
static void check_opened(const struct bootstrap *b)
{
    int hosts = 0;

    CHECK(b->ops && b->ops->size >= sizeof *b->ops && b->ops->version == BOOTSTRAP_VERSION);
    CHECK(b->ops->name && b->ops->name[0]);
    CHECK(b->n_pes >= 1 && b->pe >= 0 && b->pe < b->n_pes && b->host);
    for (int pe = 0; pe < b->n_pes; pe++) { /* numbered by their lowest PEs */
        CHECK(b->host[pe] >= 0 && b->host[pe] <= hosts);
        hosts += b->host[pe] == hosts;
    }
    CHECK_EQ(b->n_hosts, hosts);
    CHECK(b->job[0] && memchr(b->job, 0, sizeof b->job));
}

/* All PEs have the same: the job's name, and the map of nodes. */
static void check_agreed(struct bootstrap *b)
{
    char job[BOOTSTRAP_BLOB_MAX];
    size_t bytes;
    int host;

    CHECK_EQ(b->ops->publish(b, b->job, strlen(b->job)), GSHMEM_OK);
    CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
    for (int pe = 0; pe < b->n_pes; pe++) {
        CHECK_EQ(b->ops->fetch(b, pe, job, sizeof job, &bytes), GSHMEM_OK);
        CHECK(bytes == strlen(b->job) && memcmp(job, b->job, bytes) == 0);
    }
    CHECK_EQ(b->ops->publish(b, &b->host[b->pe], sizeof host), GSHMEM_OK);
    CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
    for (int pe = 0; pe < b->n_pes; pe++) {
        CHECK_EQ(b->ops->fetch(b, pe, &host, sizeof host, &bytes), GSHMEM_OK);
        CHECK(bytes == sizeof host && host == b->host[pe]);
    }
}

/* A call that cannot be right is refused, and changes nothing. */
static void check_refusals(struct bootstrap *b, int round)
{
    const int other = (b->pe + 1) % b->n_pes;
    unsigned char blob[BOOTSTRAP_BLOB_MAX + 1] = {0};
    size_t bytes = 77;

    CHECK_EQ(b->ops->publish(b, blob, sizeof blob), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(b->ops->fetch(b, -1, blob, sizeof blob, &bytes), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(b->ops->fetch(b, b->n_pes, blob, sizeof blob, &bytes), GSHMEM_ERR_ARGUMENT);
    if (size_of(other, round) > 0)
        CHECK_EQ(b->ops->fetch(b, other, blob, size_of(other, round) - 1, &bytes),
                 GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(bytes, 77);
    CHECK_EQ(blob[0], 0);
    check_blob(b, other, round);
}

void drive_conform(struct bootstrap *b)
{
    check_opened(b);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 4 == 1 && b->pe == round % b->n_pes)
            usleep(30000); /* a PE comes late: nobody is through before it */
        publish(b, round);
        CHECK_EQ(b->ops->fence(b), GSHMEM_OK);
        if (round % 4 == 2 && b->pe == round % b->n_pes)
            usleep(30000);                     /* the others are in the next round already */
        for (int i = 0; i < 2 * b->n_pes; i++) /* any number of times */
            check_blob(b, (b->pe * 5 + i) % b->n_pes, round);
        if (round % 4 == 3)
            check_refusals(b, round);
    }
    check_agreed(b);
}
