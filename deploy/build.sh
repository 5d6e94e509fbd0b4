#!/usr/bin/env bash
# Installs what is missing and builds the release preset into build/release.
#   deploy/build.sh [--with-tests] [NINJA ARGUMENTS]    default: everything; tests and benchmarks only with --with-tests,
#                                                       or where they were configured before
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
tests=()
settings=()
if [ "${1-}" = --with-tests ]; then
  shift
  tests=(--with-tests)
  settings=(-DCHAINFLEET_TESTS=ON -DCHAINFLEET_BENCHMARKS=ON)
elif [ ! -e build/release/CMakeCache.txt ]; then
  settings=(-DCHAINFLEET_TESTS=OFF -DCHAINFLEET_BENCHMARKS=OFF)
fi
deploy/install_deps.sh "${tests[@]}"
echo "build: configuring and compiling into build/release (ccache $(command -v ccache >/dev/null && echo on || echo off), $(nproc) jobs)"
mkdir -p build/release
if ! cmake --preset release "${settings[@]}" > build/release/configure.log 2>&1; then
  cat build/release/configure.log >&2
  echo "build: configuring failed; the log above is build/release/configure.log" >&2
  exit 1
fi
grep -E 'CUDA toolkit|libchainfleet_cuda' build/release/configure.log | sed 's/^-- /build: /'
ninja -C build/release "$@"
