#!/usr/bin/env bash
# Packs what a host with a GPU needs to build and measure chainfleet without any package or network: the sources of the
# worker and its tests, the libraries that they are built with, and the binaries of the service. docs/explanation/gpu.md says how to
# use the bundle.
#   tests/gpu/pack.sh [--fake] TARGET     TARGET: a file NAME.tar.gz of at most 60 MiB, or a new folder
#   --fake          the fake GPU takes the place of the CUDA module, for a rehearsal without a GPU
#   CHAINFLEET_BUILD   folder of a build with server, worker, client and tests/gpu (default: build/release)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${CHAINFLEET_BUILD:-$root/build/release}
torch=$(sed -n 's/^CHAINFLEET_TORCH_ROOT:PATH=//p' "$build/CMakeCache.txt")
limit=$((60 << 20))
fake=0; [ "${1:-}" != --fake ] || { fake=1; shift; }
[ $# = 1 ] || { sed -n '2,8p' "$0"; exit 2; }
target=$1
say() { echo "pack: $*"; }

folder=$target
if [[ $target = *.tar.gz ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  folder=$work/chainfleet-gpu
fi
mkdir -p "$folder"/{src,deps/usr,bin,lib}

# The sources that the numerics preset compiles.
tar -C "$root" --exclude=__pycache__ -c CMakeLists.txt CMakePresets.json cmake core worker tests | tar -x -C "$folder/src"
git -C "$root" describe --always --dirty --abbrev=40 > "$folder/COMMIT" 2>/dev/null || echo unknown > "$folder/COMMIT"

# Headers, libraries and CMake packages. A host of another distribution has no Debian folder of headers: they move up.
packages=(libabsl-dev libabsl20220623 libhwy-dev libhwy1 libgtest-dev libgmock-dev libspdlog-dev libspdlog1.10 libfmt-dev
  libfmt9 libssl-dev libssl3 nlohmann-json3-dev)
dpkg -L "${packages[@]}" | sort -u | grep -E '^/usr/(include|lib)/|^/usr/share/cmake' |
  grep -vE '\.pc$|/lib(absl|crypto|ssl|hwy)[^/]*\.a$|/(engines-3|ossl-modules)/' | while read -r path; do
  [ -d "$path" ] || echo "${path#/usr/}"
done > "$folder/deps/files"
tar -C /usr -c -T "$folder/deps/files" | tar -x -C "$folder/deps/usr"
if [ -d "$folder/deps/usr/include/x86_64-linux-gnu" ]; then
  cp -a "$folder/deps/usr/include/x86_64-linux-gnu/." "$folder/deps/usr/include"
  rm -r "$folder/deps/usr/include/x86_64-linux-gnu"
fi

# Binaries built here, and the libraries that they load, without LibTorch and the C and C++ run times.
cp "$build"/bin/{chainfleet,chainfleet-server,chainfleet-worker} "$build/tests/chain_rate" "$folder/bin"
if [ $fake = 1 ]; then
  cp "$build/tests/fake_cuda/libchainfleet_cuda.so" "$folder/lib"
  cp "$build/tests/fake_cuda/fake_cuda_parity_test" "$folder/bin/cuda_parity_test"
elif [ -e "$build/lib/libchainfleet_cuda.so" ]; then
  cp "$build/lib/libchainfleet_cuda.so" "$folder/lib"
  cp "$build/tests/cuda_parity_test" "$folder/bin"
else
  say "no CUDA module in $build/lib: build it on a host with nvcc" >&2
  exit 1
fi
ldd "$folder"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE "^$(dirname "$torch")|/(libc|libm|libmvec|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libgomp|libutil)\.so" |
  xargs cp -L -t "$folder/lib"
strip --strip-unneeded "$folder"/bin/* "$folder"/lib/*

for part in src deps bin lib; do say "$part: $(du -sm "$folder/$part" | cut -f1) MiB unpacked"; done
[[ $target = *.tar.gz ]] || exit 0
tar -C "$work" --owner=0 --group=0 -c chainfleet-gpu | gzip -9 > "$target"
size=$(stat -c %s "$target")
say "$target: $((size >> 20)) MiB"
[ "$size" -le $limit ] || { say "more than the 60 MiB that fit a transfer: look at what is large in bin and lib" >&2; exit 1; }
