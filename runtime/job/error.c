/* The error policy, and the texts of statuses. */
#include <pthread.h>

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/unseen.h"
#include "runtime/job/job.h"

struct policy {
    gshmem_error_handler_t handler;
    void *context;
};

/* Set by the program, also before there is a job; read by any of its threads and by the proxy. */
static struct policy policy;
static pthread_mutex_t policy_lock = PTHREAD_MUTEX_INITIALIZER;

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
    unseen_clear();
    if (text)
        *text = last_error_text();
    return last_error_status();
}

void gshmem_set_error_handler(gshmem_error_handler_t handler, void *context)
{
    pthread_mutex_lock(&policy_lock);
    policy = (struct policy){handler, context};
    pthread_mutex_unlock(&policy_lock);
}

static struct policy policy_now(void)
{
    pthread_mutex_lock(&policy_lock);
    struct policy now = policy;
    pthread_mutex_unlock(&policy_lock);
    return now;
}

bool error_ends_job(void)
{
    return !policy_now().handler && settings_number(SETTING_ON_ERROR) == CHOICE_ON_ERROR_ABORT;
}

/* The last failure of this thread. */
static void policy_apply(const struct policy *p, gshmem_status_t status)
{
    if (p->handler)
        p->handler(status, last_error_text(), p->context);
    else if (settings_number(SETTING_ON_ERROR) == CHOICE_ON_ERROR_ABORT)
        job_abort(1, last_error_text());
}

void gshmem_raise(gshmem_status_t status)
{
    if (status == GSHMEM_OK)
        return;
    const struct policy now = policy_now();
    if (now.handler)
        unseen_clear();
    policy_apply(&now, status);
}

void error_raise_for(gshmem_status_t status, const char *text)
{
    const struct policy now = policy_now();

    fail_silently(status, "%s", text);
    if (!now.handler)
        unseen_add(text);
    policy_apply(&now, status);
}
