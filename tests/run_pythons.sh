#!/usr/bin/env bash
# Runs the tests of the Python package with other interpreters, and with the newest numpy, grpcio and protobuf that pip
# finds for each; the last tests start a fleet. Not part of run_all.sh.
#   tests/run_pythons.sh PYTHON...     such as python3.10 python3.13
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,4p' "$0"; exit 2; }
[ -n "${CHAINFLEET_BIN:-}" ] || deploy/build.sh chainfleet chainfleet-server chainfleet-worker
export CHAINFLEET_BIN=${CHAINFLEET_BIN:-$PWD/build/release/bin} PYTHONPATH=$PWD/tests/support PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r client/python "$folder/package"
for python in "$@"; do
  echo "run_pythons: $("$python" --version)"
  "$python" -m venv --clear "$folder/venv"
  "$folder/venv/bin/pip" install --quiet "$folder/package" pandas
  for tests in aio arrays connection contexts draws package prediction show specs; do
    (cd tests/client/python && "$folder/venv/bin/python" -m unittest --quiet "${tests}_test")
  done
  (cd tests/e2e && "$folder/venv/bin/python" -m unittest --quiet python_test.Package)
done
