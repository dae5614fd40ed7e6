#!/bin/bash
# On a machine with a GPU: builds with what it has, runs what can be run on one, and writes a report.
#
#     tests/gpu/run.sh                     all parts
#     tests/gpu/run.sh --minutes 9 build   one part, or some; see --help for their names
#
# Exits with 0 when all passed, 77 after "SKIP: reason" where it cannot run, else 1.

command -v python3 >/dev/null || {
    echo "SKIP: python3 is not installed"
    exit 77
}
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin exec python3 -B "$(dirname "$0")/main.py" "$@"
