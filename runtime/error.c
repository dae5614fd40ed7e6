/* What becomes of failures, and the texts of statuses. */
#include "runtime/base/settings.h"
#include "runtime/job.h"

static struct {
    gshmem_error_handler_t handler;
    void *context;
} policy;

static const struct {
    const char *name;
    const char *text;
} statuses[] = {
#define X(name, value, text) [value] = {"GSHMEM_" #name, text},
    GSHMEM_STATUS_TABLE(X)
#undef X
};

enum { STATUSES = sizeof statuses / sizeof statuses[0] };

const char *gshmem_status_name(gshmem_status_t status)
{
    return (unsigned)status < STATUSES ? statuses[status].name : "unknown status";
}

const char *gshmem_status_text(gshmem_status_t status)
{
    return (unsigned)status < STATUSES ? statuses[status].text : "unknown status";
}

gshmem_status_t gshmem_last_error(const char **text)
{
    if (text)
        *text = last_error_text();
    return last_error_status();
}

void gshmem_set_error_handler(gshmem_error_handler_t handler, void *context)
{
    policy.handler = handler;
    policy.context = context;
}

void gshmem_raise(gshmem_status_t status)
{
    enum { ABORT };

    if (status == GSHMEM_OK)
        return;
    if (policy.handler)
        policy.handler(status, last_error_text(), policy.context);
    else if (settings_number(SETTING_ON_ERROR) == ABORT)
        job_abort(1, last_error_text());
}
