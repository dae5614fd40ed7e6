/* What becomes of failures that no status can tell: the handler, and GSHMEM_ON_ERROR=return. */
#include "pe.h"

static struct {
    int calls;
    gshmem_status_t status;
    char text[300];
    void *context;
} seen;

static void handler(gshmem_status_t status, const char *text, void *context)
{
    seen.calls++;
    seen.status = status;
    snprintf(seen.text, sizeof seen.text, "%s", text);
    seen.context = context;
}

static uint64_t cell;

static void test_handler(void)
{
    int mine;

    memset(&seen, 0, sizeof seen);
    gshmem_set_error_handler(handler, &mine);
    cell = 5;
    CHECK_EQ(gshmem_signal_wait_until(&cell, 99, 1), 0);
    CHECK_EQ(seen.calls, 1);
    CHECK_EQ(seen.status, GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(seen.text, "signal_wait_until");
    CHECK_HAS(seen.text, "99");
    CHECK(seen.context == &mine);

    gshmem_raise(GSHMEM_OK);
    CHECK_EQ(seen.calls, 1);
    gshmem_raise(GSHMEM_ERR_TIMEOUT);
    CHECK_EQ(seen.calls, 2);
    CHECK_EQ(seen.status, GSHMEM_ERR_TIMEOUT);

    gshmem_ctx_session_start(GSHMEM_CTX_INVALID, 0);
    CHECK_EQ(seen.calls, 3);
    CHECK_EQ(seen.status, GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(seen.text, "GSHMEM_CTX_INVALID");

    /* a returned status is told once, by being returned */
    CHECK_FAILS(gshmem_putmem(&cell, &cell, 8, n), GSHMEM_ERR_ARGUMENT, "put");
    CHECK_EQ(seen.calls, 3);
    gshmem_set_error_handler(NULL, NULL);
}

static void test_return(void)
{
    gshmem_raise(GSHMEM_ERR_TRANSPORT); /* GSHMEM_ON_ERROR=return: carries on */
    cell = 6;
    CHECK_EQ(gshmem_signal_wait_until(&cell, 7, 1), 0);
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(seen.calls, 3);
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    setenv("GSHMEM_ON_ERROR", "return", 1);
    begin();
    test_handler();
    test_return();
    end();
    return 0;
}
