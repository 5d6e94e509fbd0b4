#!/usr/bin/env bash
# Fuzzes each target of tests/fuzz under AddressSanitizer, one after another, at the lowest priority. Long; not part of run_all.sh.
#   tests/run_fuzzers.sh [MINUTES [TARGET...]]     default: 60 minutes for each; TARGET: dataset, exported, http, ...
# Begins with the corpus of the tree and what earlier runs found in the build folder. Prints the number of runs of each
# target. A crashing input is written to the build folder as crash-*.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-60}
shift $(($# > 0 ? 1 : 0))
build=build/release/tests/fuzz
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done
fi
[ -e build/release/build.ninja ] || cmake --preset release > /dev/null
ninja -C build/release "${targets[@]/%/_fuzz_target}" > /dev/null
for target in "${targets[@]}"; do
  log=$build/$target.log
  # libFuzzer's own statistics pass 1 GiB in a few minutes, so the bound is on single allocations.
  nice -n 19 "$build/${target}_fuzz" -max_total_time=$((minutes * 60)) -timeout=10 -malloc_limit_mb=1024 -rss_limit_mb=4096 \
    -max_len=4096 -print_final_stats=1 -artifact_prefix="$build/" "$build/${target}_found" "tests/fuzz/${target}_corpus" \
    > "$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
  echo "$target: $(awk '/stat::number_of_executed_units/ {print $2}' "$log") runs in $minutes minutes"
done
