#!/usr/bin/env bash
# Builds the programs and makes two wheels of them: chainfleet (Python alone) and chainfleet_server (server, worker and
# command line, with every library that they need but glibc, libstdc++, libz and PyTorch's). Beside them: what they are
# made of (sbom.cdx.json) and their checksums (SHA256SUMS).
#   deploy/wheels/build.sh [--no-build] [FOLDER]    --no-build packs what build/release has; default FOLDER: build/wheels
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/deploy/wheels
built=$root/build/release
tools=${CHAINFLEET_DEPS:-$HOME/.cache/chainfleet}/auditwheel-6.8.2
if [ "${1-}" = --no-build ]; then shift; else "$root/deploy/build.sh" programs; fi
mkdir -p "${1:-$root/build/wheels}"
wheels=$(cd "${1:-$root/build/wheels}" && pwd)
"$root/deploy/install_deps.sh" --for-wheels
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export PYTHONPATH=$tools PATH=$tools/bin:$PATH PYTHONDONTWRITEBYTECODE=1
CHAINFLEET_VERSION=$("$built/bin/chainfleet" --version)
export CHAINFLEET_VERSION

# wheel PROJECT FOLDER: its wheel, with the license of the tree.
wheel() {
  cp "$root/LICENSE" "$1"
  python3 -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir "$2" "$1"
}

# copyrights FOLDER PROGRAM...: what the Debian packages of the programs' libraries say about their licenses.
copyrights() {
  local folder=$1 package libraries; shift
  mapfile -t libraries < <(ldd "$@" | sed -n 's/.* => \(\/lib\/[^ ]*\) .*/\1/p' | sort -u)  # Debian's, not torch's
  { dpkg -S "${libraries[@]/#//usr}" "${libraries[@]}" 2>/dev/null || true; } | cut -d : -f 1 | sort -u | while read -r package; do
    cp "/usr/share/doc/$package/copyright" "$folder/$package.txt"
  done
}

cp -r "$root/client/python" "$stage/python"
rm -rf "$stage"/python/{build,*.egg-info}  # an earlier pip install leaves old files there
cp -r "$here/chainfleet_server" "$stage/server"
package=$stage/server/chainfleet_server
for component in chainfleet chainfleet-server chainfleet-worker chainfleet-cuda; do
  cmake --install "$built" --strip --component "$component" --prefix "$package" >/dev/null
done
# Here torch is next to the package.
patchelf --set-rpath "\$ORIGIN/../../torch/lib" "$package/bin/chainfleet-worker"
if [ -e "$package/lib/libchainfleet_cuda.so" ]; then
  patchelf --set-rpath "\$ORIGIN/../../torch/lib" "$package/lib/libchainfleet_cuda.so"
else
  echo "wheels: without libchainfleet_cuda.so, for there was no CUDA toolkit: its workers run on --device cpu"
fi
mkdir "$package/licenses"
copyrights "$package/licenses" "$built"/bin/chainfleet{,-server,-worker}

rm -f "$wheels"/chainfleet-*.whl "$wheels"/chainfleet_server-*.whl
wheel "$stage/python" "$wheels"
wheel "$stage/server" "$stage"
python3 -m auditwheel repair --plat manylinux_2_36_x86_64 --only-plat --exclude 'libtorch*.so' --exclude 'libc10*.so' \
  --exclude libgomp.so.1 --exclude libcudart.so.13 --wheel-dir "$wheels" "$stage"/chainfleet_server-*.whl >"$stage/repair.log" 2>&1 ||
  { cat "$stage/repair.log" >&2; exit 1; }
python3 -B "$root/deploy/sbom.py" "$wheels" "$built"/bin/chainfleet{,-server,-worker}
du -h "$wheels"/chainfleet*.whl
