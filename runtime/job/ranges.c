#include "runtime/job/ranges.h"

#include "runtime/base/log.h"
#include "runtime/base/module.h"
#include "runtime/base/settings.h"

const struct device_ranges *ranges; /* a module, loaded once for all jobs */

void ranges_start(void)
{
    char why[300];

    if (settings_number(SETTING_NVTX) == 0 || ranges)
        return;
    ranges = module_symbol("cuda", "gshmem_ranges", why, sizeof why);
    if (!ranges)
        log_warn("GSHMEM_NVTX=on: calls are not marked: %s (the header nvtx3/nvToolsExt.h is "
                 "needed when "
                 "GSHMEM is built)",
                 why);
}
