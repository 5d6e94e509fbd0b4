#!/usr/bin/env bash
# Runs the Stan program of docs/guides/from_stan.md, and the Python session beside it, and compares their posteriors.
# Installs 100 MB of wheels in build/stan; takes a minute after that. Not part of run_all.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/install_deps.sh --with-tests
[ -n "${CHAINFLEET_BIN:-}" ] || deploy/build.sh chainfleet chainfleet-server chainfleet-worker
. tests/deploy/pinned_venv.sh
pinned_venv stan
export CHAINFLEET_BIN=${CHAINFLEET_BIN:-$PWD/build/release/bin} PYTHONPATH=tests/support CHAINFLEET_NEWEST_WHEELS=1
exec /usr/bin/python3 -B tests/stan/compare.py "$PWD/build/stan/bin/python" docs/guides/from_stan.md
