#include "runtime/base/nvshmem_settings.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/other_names.h"
#include "runtime/base/settings.h"

/* What NVSHMEM 3.8 reads when a program runs, and GSHMEM has no counterpart of. Variables of its
 * build are not here: shells set them for other reasons. */
/* clang-format off */
static const char *const without_counterpart[] = {
    "NVSHMEM_ASSERT_ATOMICS_SYNC", "NVSHMEM_BARRIER_DISSEM_KVAL", "NVSHMEM_BARRIER_TG_DISSEM_KVAL",
    "NVSHMEM_BCAST_ALGO", "NVSHMEM_BCAST_TREE_KVAL", "NVSHMEM_BOOTSTRAP_PLUGIN",
    "NVSHMEM_BOOTSTRAP_SHMEM_MODE", "NVSHMEM_BOOTSTRAP_TWO_STAGE",
    "NVSHMEM_BOOTSTRAP_UID_SESSION_ID", "NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY",
    "NVSHMEM_BYPASS_ACCESSIBILITY_CHECK", "NVSHMEM_BYPASS_FLUSH", "NVSHMEM_CPU_AFFINITY",
    "NVSHMEM_CUDA_LIMIT_STACK_SIZE", "NVSHMEM_CUMEM_GRANULARITY", "NVSHMEM_DEBUG_ATTACH_DELAY",
    "NVSHMEM_DISABLE_CE_COLLECTIVES", "NVSHMEM_DISABLE_DATA_DIRECT",
    "NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", "NVSHMEM_DISABLE_NCCL", "NVSHMEM_DISABLE_NVLS_SHARING",
    "NVSHMEM_DISABLE_SELF_WRITE_CE_COLL", "NVSHMEM_ENABLE_ALIGNED_MALLOC",
    "NVSHMEM_ENABLE_ERROR_CHECKS", "NVSHMEM_ENABLE_MULTI_PORT", "NVSHMEM_ENABLE_NIC_PE_MAPPING",
    "NVSHMEM_ENABLE_RAIL_OPT", "NVSHMEM_FCOLLECT_ALGO", "NVSHMEM_FCOLLECT_LL128_THRESHOLD",
    "NVSHMEM_FCOLLECT_LL_THRESHOLD", "NVSHMEM_FCOLLECT_NVLS_THRESHOLD",
    "NVSHMEM_GPUNETIO_ENABLE_GDAKI", "NVSHMEM_GPUNETIO_ENABLE_ORDERING_SEMANTIC",
    "NVSHMEM_GPUNETIO_NIC_HANDLER", "NVSHMEM_GPUNETIO_NUM_FETCH_SLOTS_PER_RC",
    "NVSHMEM_GPUNETIO_NUM_RC_PER_PE_GPU", "NVSHMEM_GPUNETIO_NUM_REQUESTS_IN_BATCH",
    "NVSHMEM_HEAP_KIND", "NVSHMEM_IBGDA_DCI_MAP_BY", "NVSHMEM_IBGDA_DCT_MAP_BY",
    "NVSHMEM_IBGDA_ENABLE_MULTI_PORT", "NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE",
    "NVSHMEM_IBGDA_NIC_HANDLER", "NVSHMEM_IBGDA_NUM_DCI", "NVSHMEM_IBGDA_NUM_DCT",
    "NVSHMEM_IBGDA_NUM_FETCH_SLOTS_PER_DCI", "NVSHMEM_IBGDA_NUM_FETCH_SLOTS_PER_RC",
    "NVSHMEM_IBGDA_NUM_RC_PER_PE", "NVSHMEM_IBGDA_NUM_REQUESTS_IN_BATCH",
    "NVSHMEM_IBGDA_NUM_SHARED_DCI", "NVSHMEM_IBGDA_RC_MAP_BY", "NVSHMEM_IB_ADDR_FAMILY",
    "NVSHMEM_IB_ADDR_RANGE", "NVSHMEM_IB_ATOMIC_POLICY", "NVSHMEM_IB_ENABLE_IBGDA",
    "NVSHMEM_IGNORE_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "NVSHMEM_INFO_HIDDEN",
    "NVSHMEM_LIBFABRIC_PROVIDER", "NVSHMEM_LIBFABRIC_SIGNAL_WAIT_SPIN_COUNT", "NVSHMEM_MAX_CTAS",
    "NVSHMEM_MAX_MEMORY_PER_GPU", "NVSHMEM_MAX_NICS_PER_PE", "NVSHMEM_MAX_PEER_STREAMS",
    "NVSHMEM_MAX_TEAMS", "NVSHMEM_NETDEVS_POLICY", "NVSHMEM_PRIORITIZE_LOGICAL_ENDPOINT",
    "NVSHMEM_PROXY_REQUEST_BATCH_MAX", "NVSHMEM_QP_DEPTH", "NVSHMEM_REDMAXLOC_ALGO",
    "NVSHMEM_REDUCESCATTER_ALGO", "NVSHMEM_REDUCESCATTER_NVLS_THRESHOLD", "NVSHMEM_REDUCE_ALGO",
    "NVSHMEM_REDUCE_NVLS_THRESHOLD", "NVSHMEM_REDUCE_RECEXCH_KVAL",
    "NVSHMEM_REGION_DEVICE_BATCH_THRESHOLD", "NVSHMEM_REGION_HOST_BATCH_MAX_OPS",
    "NVSHMEM_REGION_MAX_SLOTS", "NVSHMEM_SRQ_DEPTH", "NVSHMEM_TMA_MAX_BLOCKS", "NVSHMEM_TMA_POLICY",
    "NVSHMEM_UCX_RC_TX_INLINE_RESP", "NVSHMEM_UCX_TLS", "NVSHMEM_UCX_ZCOPY_THRESH",
};
/* clang-format on */
enum { WITHOUT_COUNTERPART = sizeof without_counterpart / sizeof without_counterpart[0] };

void nvshmem_settings_warn(void)
{
    char set[600];
    size_t used = 0;
    int n = 0;

    for (int i = 0; i < WITHOUT_COUNTERPART; i++) {
        if (!getenv(without_counterpart[i]))
            continue;
        if (used < sizeof set)
            used += (size_t)snprintf(set + used, sizeof set - used, "%s%s", n ? ", " : "",
                                     without_counterpart[i]);
        n++;
    }
    if (n > 0)
        log_warn("%s: %s no counterpart in GSHMEM, and no effect (gshmem-info --nvshmem-settings "
                 "lists what has one)",
                 set, n == 1 ? "it has" : "they have");
}

void nvshmem_settings_print(FILE *to)
{
    struct other_name other;
    struct other_value v;

    fputs("| NVSHMEM | its values here | GSHMEM |\n| --- | --- | --- |\n", to);
    for (int s = 0; s < SETTING_COUNT; s++) {
        const char *names = settings_other_names((enum setting)s);
        while (other_names_next(&names, &other)) {
            if (strncmp(other.name, "NVSHMEM_", 8) != 0)
                continue;
            fprintf(to, "| `%s` | ", other.name);
            if (!other.values)
                fputs("the same", to);
            for (int at = 0, first = 1; other_names_value(&other, &at, &v); first = 0)
                fprintf(to, "%s%.*s: %.*s", first ? "" : ", ", v.theirs_bytes, v.theirs,
                        v.ours_bytes ? v.ours_bytes : (int)sizeof "as if unset" - 1,
                        v.ours_bytes ? v.ours : "as if unset");
            fprintf(to, " | `%s` |\n", settings_variable((enum setting)s));
        }
    }
    fputs("\nWithout a counterpart, and without effect:", to);
    for (int i = 0; i < WITHOUT_COUNTERPART; i++)
        fprintf(to, "%s\n`%s`", i ? "," : "", without_counterpart[i]);
    fputs(".\n", to);
}
