#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. Safe to run again: what is done is not done twice.
# GPU tests are skipped on a host without a GPU. Arguments go to ctest, for example: tests/run_all.sh -L unit
set -euo pipefail
cd "$(dirname "$0")/.."
minutes() { printf 'run_all: %s took %d min %d s\n' "$1" $(($2 / 60)) $(($2 % 60)); }

deploy/build.sh --with-tests -j "$(nproc)" all link_checks
minutes "installing and building" $SECONDS
export OMP_WAIT_POLICY=passive  # a thread that spins while it waits takes another test's core
ctest --preset release -j3 --output-on-failure "$@"  # on two cores, because tests wait for a third of their time
