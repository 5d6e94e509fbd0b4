#!/usr/bin/env bash
# Installs what is missing and builds the release preset into build/release. Arguments go to ninja (default: everything).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
deploy/install_deps.sh
echo "build: configuring and compiling into build/release (ccache $(command -v ccache >/dev/null && echo on || echo off), $(nproc) jobs)"
mkdir -p build/release
if ! cmake --preset release > build/release/configure.log 2>&1; then
  cat build/release/configure.log >&2
  echo "build: configuring failed; the log above is build/release/configure.log" >&2
  exit 1
fi
grep -E 'CUDA toolkit|libchainfleet_cuda' build/release/configure.log | sed 's/^-- /build: /'
ninja -C build/release "$@"
