#!/usr/bin/env bash
# Sends the same requests to chainfleet and to a real Triton, predicts with public clients, and sends requests that
# schemathesis makes from the OpenAPI documents. Installs 770 MB of wheels in build/interop; takes two minutes after that.
# Not part of run_all.sh.
#   tests/run_interop.sh [--write]     --write: writes the tables into docs/reference/triton.md
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${CHAINFLEET_BIN:-}" ] || deploy/build.sh chainfleet chainfleet-server chainfleet-worker
. tests/deploy/pinned_venv.sh
pinned_venv interop  # Triton's model processes have the interpreter 3.11.2: a newer standard library does not fit
export CHAINFLEET_BIN=${CHAINFLEET_BIN:-$PWD/build/release/bin} PYTHONPATH=tests/support
[ "${1:-}" != --write ] || set -- docs/reference/triton.md
exec build/interop/bin/python -B tests/interop/run.py "$@"
