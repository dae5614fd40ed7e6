/* On one PE alone there is no memory to keep account of one more object: realloc, which has copied the old one by
 * then on the others, fails on all, and calloc gives zeros afterwards. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "gshmem.h"

#include "check.h"

enum { SIZE = 1 << 20, BATCH = 4096 };

/* Accounts are made in batches of more bytes than that. */
static bool none_left;
static int batches;

extern void *__libc_malloc(size_t bytes);

/* The library calls this one. */
#pragma GCC visibility push(default)
void *malloc(size_t bytes)
{
    batches += bytes > BATCH;
    return none_left && bytes > BATCH ? NULL : __libc_malloc(bytes);
}
#pragma GCC visibility pop

/* Small objects, until one takes a new batch; how many. */
static int fill_batch(void)
{
    int n = 0;

    for (batches = 0; !batches; n++)
        CHECK(gshmem_malloc(16) != NULL);
    return n;
}

static void check_zero(const unsigned char *object)
{
    CHECK(object != NULL);
    for (size_t i = 0; i < SIZE; i++)
        CHECK_EQ(object[i], 0);
}

int main(void)
{
    CHECK_OK(gshmem_init());
    const bool mine = gshmem_my_pe() == gshmem_n_pes() - 1;
    unsigned char *object = gshmem_malloc(SIZE / 2);
    CHECK(object != NULL);
    memset(object, 0xa5, SIZE / 2);
    fill_batch();
    for (int left = fill_batch() - 1; left > 0; left--) /* the next takes a new one */
        CHECK(gshmem_malloc(16) != NULL);
    none_left = mine;
    CHECK(!gshmem_realloc(object, SIZE));
    none_left = false;
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_MEMORY);
    for (int i = 0; i < SIZE / 2; i++)
        CHECK_EQ(object[i], 0xa5);
    for (int i = 0; i < 4; i++) /* where the new object was to be, and elsewhere */
        check_zero(gshmem_calloc(1, SIZE));
    CHECK_OK(gshmem_finalize());
    return 0;
}
