#!/usr/bin/env bash
# The tests under sanitizers: all of them but statistics and mutants under AddressSanitizer with UndefinedBehaviorSanitizer, and
# those of the floors without gRPC under ThreadSanitizer. About an hour and a half on 2 cores; not part of run_all.sh.
#   tests/run_sanitizers.sh [address|thread]     default: both
# Suppressions, of third-party frames only, are in tests/sanitizers/.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-both} in
  both) kinds="address thread" ;;
  address | thread) kinds=$1 ;;
  *) sed -n '2,5p' "$0"; exit 2 ;;
esac
supp=$PWD/tests/sanitizers
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
export LSAN_OPTIONS=suppressions=$supp/leaks.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$supp/threads.supp:second_deadlock_stack=1:halt_on_error=1

# Dispatcher, stores, runner, uploader, numerics' threads and the simulation: no gRPC, which Debian builds without tsan.
without_grpc="core_base_test core_blob_store_test state_store_test server_control_test worker_runtime_test sim_test"

deploy/install_deps.sh
for kind in $kinds; do
  preset=$([ "$kind" = address ] && echo asan || echo tsan)
  cmake --preset "$preset" > /dev/null
  if [ "$kind" = address ]; then
    ninja -C "build/$preset" all
    ctest --test-dir "build/$preset" -j2 --output-on-failure -L 'unit|sim|e2e|fault'
  else
    # shellcheck disable=SC2086
    ninja -C "build/$preset" $without_grpc
    for binary in $without_grpc; do "build/$preset/tests/$binary" --gtest_brief=1; done
  fi
done
