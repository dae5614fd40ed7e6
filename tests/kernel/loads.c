/* A program without kernels loads a library that has some, while another of its threads makes teams
 * and contexts. Kernels find each of these. For one PE.
 *
 *     loads LIBRARY */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gshmem.h"

#include "check.h"

enum { ROUNDS = 20, LEAST = 4, MOST = 100 };

typedef void check_t(gshmem_team_t team, gshmem_ctx_t ctx, int64_t *word);

static gshmem_team_t team[MOST];
static gshmem_ctx_t ctx[MOST];
static atomic_bool loaded;
static int made;

static void unmake(void)
{
    while (made > 0) {
        made--;
        CHECK_OK(gshmem_ctx_destroy(ctx[made]));
        CHECK_OK(gshmem_team_destroy(team[made]));
    }
}

/* Until the library has been loaded; those that were made last are left. */
static void *make(void *unused)
{
    (void)unused;
    for (made = 0; !atomic_load(&loaded) || made < LEAST; made++) {
        if (made == MOST)
            unmake();
        CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team[made]));
        CHECK_OK(gshmem_team_create_ctx(team[made], 0, &ctx[made]));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t maker;
        int provided;

        CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
        int64_t *word = gshmem_calloc(1, sizeof *word);
        CHECK(word);
        atomic_store(&loaded, false);
        CHECK_EQ(pthread_create(&maker, NULL, make, NULL), 0);
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            CHECK_FAIL("%s", dlerror());
        atomic_store(&loaded, true);
        CHECK_EQ(pthread_join(maker, NULL), 0);
        void *found = dlsym(library, "loaded_check");
        CHECK(found);
        for (int i = 0; i < made; i++)
            ((check_t *)found)(team[i], ctx[i], word);
        unmake();
        CHECK_OK(gshmem_free(word));
        CHECK_OK(gshmem_finalize());
        CHECK_EQ(dlclose(library), 0);
    }
    return 0;
}
