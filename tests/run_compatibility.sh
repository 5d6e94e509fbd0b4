#!/usr/bin/env bash
# Runs end-to-end jobs in mixed fleets: worker, command line and Python package of an earlier release with this server,
# and the other way round. Builds the earlier release in a folder of its own below build/compatibility; with a filled
# compiler cache this takes some minutes, else half an hour. Not part of run_all.sh.
#   tests/run_compatibility.sh [COMMIT]     COMMIT: the earlier release; default: the last tag before this commit, and
#                                           without tags the last commit that dated a release in CHANGELOG.md
set -euo pipefail
cd "$(dirname "$0")/.."
old=${1:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null ||
  git log -1 --format=%H -G '^## [0-9.]+ \(2' HEAD^ -- CHANGELOG.md)}
[ -n "$old" ] || { echo "run_compatibility.sh: this clone has no earlier release: name a COMMIT" >&2; exit 2; }
commit=$(git rev-parse --short=12 "$old^{commit}")
folder=$PWD/build/compatibility
tree=$folder/$commit
programs=(chainfleet chainfleet-server chainfleet-worker)
new_bin=${CHAINFLEET_BIN:-$PWD/build/release/bin} old_bin=$tree/build/release/bin
# The compiler cache knows files by their paths below this folder, so both trees share it.
export CCACHE_BASEDIR=$PWD
if [ ! -x "$old_bin/chainfleet-worker" ]; then
  mkdir -p "$tree"
  git archive "$commit" | tar -x -C "$tree"
  "$tree/deploy/build.sh" "${programs[@]/#/bin/}"
fi
[ -n "${CHAINFLEET_BIN:-}" ] || deploy/build.sh "${programs[@]/#/bin/}"

journeys=(a_killed_worker_loses_no_draw a_killed_server_goes_on_where_it_was predictions_average_over_the_draws
  findings_of_an_ended_job_outlive_a_killed_server)

# The command line starts the programs that are next to it. Its tests and Python package are those of its own release.
mix() {  # NAME SERVER_BIN OTHERS_BIN TESTS_TREE [TEST...]
  local mixed=$folder/$1
  rm -rf "$mixed"
  mkdir "$mixed"
  cp "$2/chainfleet-server" "$3/chainfleet" "$3/chainfleet-worker" "$mixed"
  echo "== $1"
  local tests="${journeys[*]/#/journeys_test.Journeys.test_} evaluation_test versions_test"
  for together in "$tests" "${@:5}"; do  # the package's tests in a process of their own, for their own numpy
    (cd "$4/tests/e2e" && CHAINFLEET_BIN=$mixed PYTHONPATH=$4/tests/support /usr/bin/python3 -B -m unittest $together)
  done
}
python=(python_test.Package)
grep -q _fits "$tree/client/python/chainfleet/fleet.py" || python=()  # the package of 0.1 takes servers of 0.1 alone
mix "old workers and command line, new server" "$new_bin" "$old_bin" "$tree" "${python[@]}"
mix "new workers and command line, old server" "$old_bin" "$new_bin" "$PWD" python_test.Package
