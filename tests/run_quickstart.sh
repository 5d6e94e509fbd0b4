#!/usr/bin/env bash
# Runs deploy/quickstart.sh with an empty data directory and a free port. Checks its exit status, the scores that it prints, and that
# no process of it is left. Builds first, and takes two minutes after the build. Not part of run_all.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d /var/tmp/chainfleet-quickstart.XXXXXX)
data=$folder/data
left() { pgrep --full --list-full -- "$data"; }  # server and workers have the folder in their arguments
clean() {
  ! left >/dev/null || build/release/bin/chainfleet down --data-dir "$data" >&2
  rm -rf --one-file-system "$folder"
}
trap clean EXIT
fail() { echo "run_quickstart: $1" >&2; exit 1; }

CHAINFLEET_PORT=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
export CHAINFLEET_PORT
deploy/quickstart.sh --data-dir "$data" | tee "$folder/said"

! left >&2 || fail "these processes are left"
[ -s "$data/state.db" ] || fail "there is no state in the data directory"
# Rows of the table: a name of words, then DRAWS, ACCURACY %, NLL. An untrained network has 10 % and 2.3.
scores() { awk -v row="$1" 'index($0, row " ") == 1 { sub(row, ""); print $2, $3; found += 1 } END { exit found != 1 }' "$folder/said"; }
all=$(scores "all draws") || fail "there is no row \"all draws\""
single=$(scores "mean single draw theta") || fail "there is no row \"mean single draw theta\""
awk -v all="$all" -v single="$single" 'BEGIN {
  split(all, a, " "); split(single, s, " ")
  exit !(a[1] > 87 && a[1] < 93 && a[2] > 0.2 && a[2] < 0.35 && s[2] > a[2] && s[2] < 0.4)
}' || fail "accuracy and NLL are out of range: all draws $all, mean single draw $single"
grep -q '^quickstart: done in ' "$folder/said" || fail "the last line is missing"
echo "run_quickstart: passed: accuracy and NLL of all draws $all"
