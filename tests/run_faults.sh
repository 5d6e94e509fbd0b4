#!/usr/bin/env bash
# Real faults against the real binaries: each of tests/fault once, then rounds of many from a seed, each judged as the
# simulation is. docs/explanation/faults.md says what is promised. What needs mounts or networks of its own is skipped and counted
# where neither root nor unprivileged namespaces are allowed.
#   tests/run_faults.sh [ROUNDS [SEED]]     default: 20 rounds from a seed that is printed
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/build.sh chainfleet chainfleet-server chainfleet-worker fault_shim check_history
ctest --preset release --output-on-failure -L fault
cd tests/fault
export CHAINFLEET_BIN=../../build/release/bin PYTHONPATH=../support
exec ./in_namespaces.sh python3 -B chaos.py --rounds "${1:-20}" ${2:+--seed "$2"}
