#!/bin/bash
# On a machine with a GPU: builds with what it has, runs kernels' tests and benchmarks on 1, 2 and 4 PEs,
# and writes a dated report:
#
#     tests/gpu/run.sh [REPORT]        (tests/gpu/results/DATE-COMMIT.txt)
#
# Needs nvcc, meson, ninja and a C++ compiler; neither PMIx nor rdma-core. Exits with 0 when all passed,
# 77 after "SKIP: reason" where it cannot run. A test that a GPU cannot pass yet is counted as failed.
# THIS HAS NOT BEEN RUN ON A GPU YET: see tests/gpu/README.md.

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${GSHMEM_GPU_BUILD:-$root/build-gpu}

skip() {
    echo "SKIP: $*"
    exit 77
}

PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
for tool in nvcc meson ninja; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
gpus=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null)
[ "$gpus" ] || skip "nvidia-smi finds no GPU"

set -e
[ -d "$build" ] || meson setup "$build" "$root" -Dpmix=disabled -Dmpi=disabled -Dverbs=disabled -Dtests=false
ninja -C "$build"
set +e

report=${1:-$root/tests/gpu/results/$(date +%F-%H%M)-$(git -C "$root" rev-parse --short HEAD).txt}
mkdir -p "$(dirname "$report")" "$build/gpu"
export GSHMEM_DEVICE=cuda
failed=0 passed=0

say() {
    echo "$*" | tee -a "$report"
}

# What it says goes into the report where it fails.
check() {
    local name=$1 output status
    shift
    output=$(timeout -k 5 300 "$@" 2>&1 </dev/null)
    status=$?
    if [ $status = 0 ]; then
        passed=$((passed + 1))
        say "ok      $name"
    else
        failed=$((failed + 1))
        say "FAILED  $name: exit status $status"
        echo "$output" | tail -20 | sed 's/^/        /' >>"$report"
    fi
    return $status
}

: >"$report"
say "GSHMEM $(git -C "$root" describe --always --dirty) on $(hostname), $(date -u '+%F %H:%M') UTC"
say "$gpus"
say "$(nvcc --version | tail -2 | head -1)"
"$build/runtime/programs/gshmem-info" >>"$report"

for source in "$root"/tests/kernel/*.cu "$root"/tests/litmus/*.cu "$root"/examples/*.cu; do
    name=$(basename "$(dirname "$source")")-$(basename "$source" .cu)
    program=$build/gpu/$name
    check "$name, compiled" "$build/runtime/programs/gshmemcc" --device=cuda -arch=native -O2 \
        -I"$root/tests" "$source" -o "$program" || continue
    for n in 1 2 4; do
        check "$name on $n PEs" "$build/bootstrap/run/gshmemrun" -n $n "$program"
        [ $n = 1 ] || GSHMEM_MAPPED=0 check "$name on $n PEs, through the proxy" \
            "$build/bootstrap/run/gshmemrun" -n $n "$program"
    done
done

program=$build/gpu/perf
if check "benchmark of kernels, compiled" "$build/runtime/programs/gshmemcc" --device=cuda -arch=native -O2 \
    "$root/runtime/programs/perf/device.cu" -o "$program"; then
    "$build/bootstrap/run/gshmemrun" -n 2 "$program" 2>&1 | tee -a "$report"
fi
say "$passed passed, $failed failed"
[ $failed = 0 ]
