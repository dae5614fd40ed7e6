"""Special registers: one row each, as C text of up to 64 bits."""

import re

AXES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}

NAMED = {
    "%laneid": "gshmem_host_lane()",
    "%warpid": "(gshmem_host_thread_rank() / 32)",
    "%nwarpid": "((blockDim.x * blockDim.y * blockDim.z + 31) / 32)",
    "%smid": "gshmem_host_ptx_worker()",
    "%nsmid": "gshmem_host_ptx_workers()",
    "%gridid": "gshmem_host_ptx_grid()",
    "%lanemask_eq": "(1u << gshmem_host_lane())",
    "%lanemask_lt": "((1u << gshmem_host_lane()) - 1)",
    "%lanemask_le": "((2u << gshmem_host_lane()) - 1)",
    "%lanemask_gt": "(~((2u << gshmem_host_lane()) - 1))",
    "%lanemask_ge": "(~((1u << gshmem_host_lane()) - 1))",
    "%clock": "(u32)gshmem_host_clock()",
    "%clock_hi": "(u32)(gshmem_host_clock() >> 32)",
    "%clock64": "gshmem_host_clock()",
    "%globaltimer": "gshmem_host_clock()",
    "%globaltimer_lo": "(u32)gshmem_host_clock()",
    "%globaltimer_hi": "(u32)(gshmem_host_clock() >> 32)",
    "%dynamic_smem_size": "gshmem_host_ptx_shared_bytes(1)",
    "%total_smem_size": "gshmem_host_ptx_shared_bytes(0)",
    "%aggr_smem_size": "gshmem_host_ptx_shared_bytes(0)",
    "%is_explicit_cluster": "0",  # a block is a cluster of its own
    "%cluster_ctarank": "0",
    "%cluster_nctarank": "1",
    "%clusterid.x": "blockIdx.x",
    "%clusterid.y": "blockIdx.y",
    "%clusterid.z": "blockIdx.z",
    "%nclusterid.x": "gridDim.x",
    "%nclusterid.y": "gridDim.y",
    "%nclusterid.z": "gridDim.z",
    "%envreg1": "gshmem_host_ptx_grid_barrier(1)",  # where the barrier of a cooperative launch lies
    "%envreg2": "gshmem_host_ptx_grid_barrier(2)",
    "WARP_SZ": "32",
}
for axis in "xyz":
    NAMED[f"%cluster_ctaid.{axis}"] = "0"
    NAMED[f"%cluster_nctaid.{axis}"] = "1"


def special_register(name):
    """C text, or None where the name is no special register."""
    match = re.fullmatch(r"%(tid|ntid|ctaid|nctaid)\.([xyz])", name)
    return f"{AXES[match.group(1)]}.{match.group(2)}" if match else NAMED.get(name)
