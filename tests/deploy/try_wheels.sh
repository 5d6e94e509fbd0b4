#!/usr/bin/env bash
# Installs the wheels beside this script with pip, runs the Python guide and the command line with them, and says how long it
# took. Part of tests/run_wheels.sh.
set -euo pipefail
cd "$(dirname "$0")"
say() { printf 'try_wheels: %s\n' "$*"; }
! command -v cc c++ cmake || say "this machine has build tools; they are not used"
python3 -m venv environment
SECONDS=0
environment/bin/pip install --quiet --find-links . 'chainfleet[server]'
say "pip install: $SECONDS s, $(du -shL environment | cut -f 1)"
export PATH=$PWD/environment/bin:$PATH
up=$PWD/data
trap 'chainfleet down --data-dir "$up" >/dev/null; rm -rf "$up" environment' EXIT
chainfleet up --data-dir "$up" --listen 127.0.0.1:0 --metrics-listen off --workers 2
CHAINFLEET_ADDRESS=127.0.0.1:$(sed 's/.*"grpc": \([0-9]*\).*/\1/' "$up/run/ports.json")
export CHAINFLEET_ADDRESS
python -c '
import doctest, sys
failed, ran = doctest.testfile("python.md", module_relative=False, optionflags=doctest.ELLIPSIS)
print(f"try_wheels: {ran} lines of the Python guide, {failed} failed")
sys.exit(failed > 0 or ran < 20)'
say "from pip install to the end of the Python guide: $SECONDS s"
chainfleet get jobs
python -c 'import numpy; numpy.save("x.npy", numpy.random.default_rng(1).normal(size=(3, 2)).astype("float32"))'
chainfleet predict moons --input x.npy
chainfleet doctor
for program in chainfleet chainfleet-server chainfleet-worker; do $program --version; done
