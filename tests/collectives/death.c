/* A member dies in the middle of a row of collectives: the others' calls end with
 * GSHMEM_ERR_PEER_DEAD, at once from then on; teams without it go on.
 *
 * No launcher, since those end the whole job: the PEs are children that share a unique id. */
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

#include "gshmem.h"

#include "check.h"

/* Collectives, small and large ones, until one fails. */
static gshmem_status_t go_on(gshmem_team_t team, char *object, int victim)
{
    for (int i = 0;; i++) {
        gshmem_status_t status;
        if (gshmem_my_pe() == victim && i == 100)
            raise(SIGKILL);
        /* the first that the others wait for is the victim as a root: nothing has come from it */
        status = gshmem_broadcastmem(team, object, object, 8, victim);
        CHECK(status || i < 100);
        if (status || (status = gshmem_team_sync(team)) ||
            (status = gshmem_broadcastmem(team, object, object, 65536, i % 2)) ||
            (status = gshmem_reduce(team, GSHMEM_TYPE_INT8, GSHMEM_OP_MAX, object, object, 100)))
            return status;
        CHECK(i < 200);
    }
}

/* An id of each kind of PE, one that stays and the one that dies, which all get. */
static void share_ids(gshmem_team_uniqueid_t *ids, int victim)
{
    const int me = gshmem_my_pe();
    gshmem_team_uniqueid_t id;

    if (me == 0 || me == victim) {
        CHECK_OK(gshmem_team_get_uniqueid(&id));
        for (int to = 0; to <= victim; to++)
            CHECK_OK(gshmem_putmem(&ids[me != 0], &id, sizeof id, to));
    }
    CHECK_OK(gshmem_barrier_all());
}

/* The last member has died before it came. */
static void try_by_id(const gshmem_team_uniqueid_t *ids, int n)
{
    gshmem_team_t team;

    for (int i = 0; i < 2; i++) {
        CHECK_FAILS(gshmem_team_create(ids[i], n, gshmem_my_pe(), NULL, 0, &team),
                    GSHMEM_ERR_PEER_DEAD, "gshmem_team_create");
        CHECK_EQ(team, GSHMEM_TEAM_INVALID);
    }
    for (int i = 0; i < 40; i++) { /* more than there are records: none is lost by a failure */
        gshmem_team_uniqueid_t id;
        CHECK_OK(gshmem_team_get_uniqueid(&id));
        CHECK_EQ(gshmem_team_create(id, 2, 0, NULL, 0, &team), GSHMEM_ERR_PEER_DEAD);
        CHECK_FAILS(gshmem_team_create(id, 2, 1, NULL, 0, &team), GSHMEM_ERR_PEER_DEAD,
                    "no longer waits");
    }
}

static void be(int pe, int n, const gshmem_uniqueid_t *uid)
{
    gshmem_init_attr_t attr = {.uid = uid, .pe = pe, .n_pes = n};
    int victim = n - 1;
    gshmem_team_t all, rest;

    CHECK_OK(gshmem_init_attr(&attr));
    char *object = gshmem_malloc(65536);
    CHECK(object != NULL);
    gshmem_team_uniqueid_t *ids = gshmem_calloc(2, sizeof *ids);
    CHECK(ids != NULL);
    share_ids(ids, victim);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &all));
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n - 1, NULL, 0, &rest));

    CHECK_EQ(go_on(all, object, victim), GSHMEM_ERR_PEER_DEAD);
    CHECK_FAILS(gshmem_team_sync(all), GSHMEM_ERR_PEER_DEAD, "earlier collective");
    CHECK_FAILS(gshmem_fcollectmem(all, object, object, 8), GSHMEM_ERR_PEER_DEAD, "earlier");
    CHECK_FAILS(gshmem_team_destroy(all), GSHMEM_ERR_PEER_DEAD, "earlier");
    try_by_id(ids, n);
    for (int i = 0; i < 100; i++)
        CHECK_OK(gshmem_team_sync(rest));
    CHECK_OK(gshmem_team_destroy(rest));
    /* the victim, or a survivor whose gshmem_finalize has failed meanwhile for the same reason */
    CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_PEER_DEAD, "has ");
    CHECK_EQ(gshmem_finalize(), GSHMEM_ERR_PEER_DEAD);
    _exit(0);
}

static void try_job(int n)
{
    gshmem_uniqueid_t uid;
    pid_t child[8];
    int link[2];

    CHECK_EQ(pipe(link), 0);
    for (int i = 0; i < n; i++) {
        child[i] = fork();
        CHECK(child[i] >= 0);
        if (child[i] > 0)
            continue;
        if (i == 0) {
            CHECK_OK(gshmem_get_uniqueid(&uid));
            for (int j = 1; j < n; j++)
                CHECK_EQ(write(link[1], &uid, sizeof uid), sizeof uid);
        } else {
            CHECK_EQ(read(link[0], &uid, sizeof uid), sizeof uid);
        }
        be(i, n, &uid);
    }
    close(link[0]);
    close(link[1]);
    for (int i = 0; i < n; i++) {
        int status;
        CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
        if (i == n - 1)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(void)
{
    try_job(2);
    try_job(4);
    return 0;
}
