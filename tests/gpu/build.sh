#!/usr/bin/env bash
# Builds targets of the numerics preset from a bundle; those that are measured go into FOLDER/bin and FOLDER/lib.
#   build.sh BUNDLE TORCH FOLDER TARGET...
set -euo pipefail
bundle=$1 torch=$2 folder=$3; shift 3
usr=$bundle/deps/usr
generator="Unix Makefiles"
if command -v ninja >/dev/null; then generator=Ninja; fi
# Newer compilers warn of more, and headers of their standard library no longer bring in these three (Abseil of Debian 12
# needs the first).
includes="-include cstdint -include algorithm -include stdexcept"
cmake -S "$bundle/src" -B "$folder/numerics" -G "$generator" -DCMAKE_BUILD_TYPE=Release -DCHAINFLEET_NUMERICS_ONLY=ON \
  -DCHAINFLEET_BENCHMARKS=OFF -DCHAINFLEET_TORCH_ROOT="$torch" -DCMAKE_PREFIX_PATH="$usr" -DOPENSSL_ROOT_DIR="$usr" \
  -DCHAINFLEET_WARNINGS=-Wall -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "-DCMAKE_CXX_FLAGS=$includes -isystem $usr/include" >&2
cmake --build "$folder/numerics" -j "$(nproc)" --target "$@" >&2
mkdir -p "$folder/bin" "$folder/lib"
for target in "$@"; do
  case $target in
    chain_rate | cuda_parity_test) cp "$folder/numerics/tests/$target" "$folder/bin" ;;
    chainfleet_cuda) cp "$folder/numerics/lib/libchainfleet_cuda.so" "$folder/lib" ;;
    fake_cuda) cp "$folder/numerics/tests/fake_cuda/libchainfleet_cuda.so" "$folder/lib" ;;  # in place of the module
  esac
done
