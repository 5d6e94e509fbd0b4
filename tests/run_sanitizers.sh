#!/usr/bin/env bash
# The tests under sanitizers: unit, parity, sim and fault tests under AddressSanitizer with UndefinedBehaviorSanitizer, and those of the
# floors without gRPC under ThreadSanitizer. Statistics and mutants are left out. Long; not part of run_all.sh.
#   tests/run_sanitizers.sh [address|thread] [TEST...]     default: both, all; TEST: names of test binaries
# Suppressions, of third-party code only, are in tests/sanitizers/.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-both} in
  both) kinds="address thread" ;;
  address | thread) kinds=$1 ;;
  *) sed -n '2,6p' "$0"; exit 2 ;;
esac
shift $(($# > 0 ? 1 : 0))
supp=$PWD/tests/sanitizers
export CHAINFLEET_TEST_PATIENCE=300 CHAINFLEET_TEST_SHORTER=4  # seconds of a wait; jobs of fault tests: sanitized binaries are slow
# The fault shim is preloaded before the runtime of AddressSanitizer, on purpose.
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:verify_asan_link_order=0
export LSAN_OPTIONS=suppressions=$supp/leaks.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$supp/threads.supp:second_deadlock_stack=1:halt_on_error=1

# Dispatcher, stores, router, runner, uploader and the simulation: no gRPC, which Debian builds without tsan.
without_grpc="core_base_test core_blob_store_test s3_server_test state_store_test postgres_state_store_test server_control_test
  server_predict_test worker_runtime_test sim_test"

# The server that a test binary wants, as its chainfleet_test(... BESIDE) says.
beside() {
  case $1 in
    postgres_state_store_test | server_election_test) echo "python3 -B tests/support/with_postgres.py" ;;
    s3_server_test) echo "python3 -B tests/support/with_s3.py" ;;
  esac
}

run_binaries() {
  ninja -C "build/$1" "${@:2}"
  for binary in "${@:2}"; do
    echo "$1: $binary"
    $(beside "$binary") "build/$1/tests/$binary" --gtest_brief=1
  done
}

deploy/install_deps.sh --with-tests
for kind in $kinds; do
  preset=$([ "$kind" = address ] && echo asan || echo tsan)
  cmake --preset "$preset" > /dev/null
  if [ $# -gt 0 ]; then
    run_binaries "$preset" "$@"
  elif [ "$kind" = thread ]; then
    # shellcheck disable=SC2086
    run_binaries "$preset" $without_grpc
  else
    ninja -C "build/$preset" all
    ctest --test-dir "build/$preset" -j2 --output-on-failure -L 'unit|parity|sim|fault'
  fi
done
