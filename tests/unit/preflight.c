/* What is in the way of RDMA, by trees of files that are made here. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "../check.h"
#include "runtime/network/preflight.h"

static char root[] = "/tmp/gshmem-preflight-XXXXXX";
static char said[4000];

static void line(void *to, const char *name, const char *text)
{
    size_t used = strlen(said);

    (void)to;
    snprintf(said + used, sizeof said - used, "[%s] %s\n", name, text);
}

static void make(const char *below, const char *content)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", root, below);
    for (char *slash = path + sizeof root; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    if (!content) {
        CHECK_EQ(mkdir(path, 0700), 0);
        return;
    }
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(content, f) >= 0 && fclose(f) == 0);
}

static int look(void)
{
    char dev[400];

    snprintf(dev, sizeof dev, "%s/dev", root);
    said[0] = 0;
    return preflight_devices(root, dev, line, NULL);
}

static int erase(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat, (void)kind, (void)ftw;
    return remove(path);
}

static void devices(void)
{
    CHECK(mkdtemp(root) != NULL);
    CHECK_EQ(look(), 0);
    CHECK_STR(said, "");
    make("module/mlx5_core", NULL);
    CHECK_EQ(look(), 0);
    CHECK_STR(said, "[driver] driver mlx5_core is loaded, its part for RDMA is not: modprobe mlx5_ib\n");
    make("module/mlx5_ib", NULL);
    make("class/infiniband/mlx5_0", NULL);
    CHECK_EQ(look(), 1);
    CHECK_STR(said, "[mlx5_0] programs cannot reach it, as module ib_uverbs is not loaded: modprobe "
                    "ib_uverbs\n");
    make("class/infiniband_verbs/uverbs3/ibdev", "mlx5_0\n");
    CHECK_EQ(look(), 1);
    CHECK_HAS(said, "[mlx5_0] ");
    CHECK_HAS(said, "/dev/infiniband/uverbs3 is not there: in a container");
    make("dev/infiniband/uverbs3", "");
    CHECK_EQ(look(), 1);
    CHECK_STR(said, "");
    if (geteuid() != 0) {
        char path[400];
        snprintf(path, sizeof path, "%s/dev/infiniband/uverbs3", root);
        CHECK_EQ(chmod(path, 0400), 0);
        CHECK_EQ(look(), 1);
        CHECK_HAS(said, "uverbs3: Permission denied: this user needs to read and write it");
    }
    make("class/infiniband/mlx5_1", NULL);
    CHECK_EQ(look(), 2);
    CHECK_HAS(said, "[mlx5_1] programs cannot");
    CHECK_EQ(nftw(root, erase, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void memory_is(uint64_t limit, bool privileged, const char *expected)
{
    said[0] = 0;
    preflight_memory(limit, privileged, line, NULL);
    CHECK_HAS(said, expected);
}

int main(void)
{
    devices();
    memory_is(64 << 10, false, "[may be pinned] 64 KiB: too little");
    memory_is(64 << 10, false, "LimitMEMLOCK=infinity");
    memory_is(64 << 10, true, "all of it (this process is privileged");
    memory_is(1ull << 40, false, "1073741824 KiB; heaps");
    memory_is(UINT64_MAX, false, "all of it\n");
    return 0;
}
