#include "runtime/job/ranges.h"

#include "gshmem.h"
#include "runtime/base/log.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"
#include "runtime/job/job.h"
#include "runtime/stats/stats.h"
#include "runtime/trace/trace.h"

const struct device_ranges *ranges;
static const struct device_ranges *profiler; /* a module, loaded once for all jobs */

/* ---- In the trace, in the counts, and for a profiler beside them ---- */

static void begin_range(const char *name, enum trace_called of)
{
    const struct job *j = job;

    trace_event(TRACE_CALL, TRACE_NO_OP, -1, of, trace_is_on() ? trace_name(name) : 0, 0);
    if (j && j->stats->wanted)
        stats_call_begin(j->stats, name);
    if (profiler)
        profiler->begin(name);
}

static void begin_observed(const char *name)
{
    begin_range(name, TRACE_OF_GSHMEM);
}

static void end_observed(void)
{
    const struct job *j = job;

    if (profiler)
        profiler->end();
    if (j && j->stats->wanted)
        stats_call_end(j->stats);
    trace_event(TRACE_RETURN, TRACE_NO_OP, -1, 0, 0, 0);
}

static const struct device_ranges observed = {begin_observed, end_observed};

/* ---- Both ---- */

static void find_profiler(void)
{
    char why[300];

    if (settings_number(SETTING_NVTX) == CHOICE_NVTX_OFF || profiler)
        return;
    profiler = module_symbol("cuda", "gshmem_ranges", why, sizeof why);
    if (!profiler)
        log_warn("GSHMEM_NVTX=on: calls are not marked: %s (the header nvtx3/nvToolsExt.h is "
                 "needed when "
                 "GSHMEM is built)",
                 why);
}

void ranges_start(void)
{
    find_profiler();
    ranges = trace_is_on() || job->stats->wanted ? &observed : profiler;
}

void ranges_stop(void)
{
    ranges = profiler;
}

/* ---- The program's own ---- */

void gshmem_range_push(const char *name)
{
    const char *text = name ? name : "(no name)";

    if (ranges == &observed)
        begin_range(text, TRACE_OF_PROGRAM);
    else if (ranges)
        ranges->begin(text);
}

void gshmem_range_pop(void)
{
    if (ranges)
        ranges->end();
}
