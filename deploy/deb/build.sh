#!/usr/bin/env bash
# Builds the programs and makes three Debian packages of them: chainfleet (command line, guides, example jobs),
# chainfleet-server and chainfleet-worker (with LibTorch for the CPU), with man pages and systemd units. Beside them: what they
# are made of (sbom.cdx.json) and their checksums (SHA256SUMS).
#   deploy/deb/build.sh [--no-build] [FOLDER]    --no-build packs what build/release has; default FOLDER: build/deb
#   CHAINFLEET_MAINTAINER                           who answers for the packages: Name <address>
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/deploy/deb
built=$root/build/release
libtorch=${CHAINFLEET_DEPS:-$HOME/.cache/chainfleet}/libtorch-2.11.0
if [ "${1-}" = --no-build ]; then shift; else "$root/deploy/build.sh" programs; fi
mkdir -p "${1:-$root/build/deb}"
packages=$(cd "${1:-$root/build/deb}" && pwd)
rm -f "$packages"/chainfleet*.deb
maintainer=${CHAINFLEET_MAINTAINER:-chainfleet <chainfleet@localhost>}
version=$("$built/bin/chainfleet" --version)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
python3 -B "$here/man_pages.py" "$version" "$stage/man"

# package NAME: its folder, with program, man pages and documents.
package() {
  local name=$1 usr=$stage/$1/usr page
  cmake --install "$built" --strip --component "$name" --prefix "$usr" >/dev/null
  mkdir -p "$usr/share/doc/$name" "$usr/share/man/man1"
  cp "$here/copyright" "$usr/share/doc/$name/copyright"
  gzip -9nc "$root/CHANGELOG.md" > "$usr/share/doc/$name/changelog.gz"
  printf '%s (%s-1) bookworm; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$name" "$version" \
    "$maintainer" "$(date -R -r "$root/CHANGELOG.md")" |
    gzip -9nc > "$usr/share/doc/$name/changelog.Debian.gz"
  for page in "$stage/man/$name".1 "$stage/man/$name"-*.1; do
    [ -e "$page" ] || continue
    gzip -9nc "$page" > "$usr/share/man/man1/$(basename "$page").gz"
    rm "$page"
  done
}

# unit NAME PATTERN: its systemd unit, and the scripts that stop and restart the units that match.
unit() {
  install -D -m 644 -t "$stage/$1/lib/systemd/system" "$root/deploy/systemd/$1"*.service
  install -D -m 755 -t "$stage/scripts/$1" "$here/postinst" "$here/prerm"
  sed -i "s/UNIT/$2/" "$stage/scripts/$1"/*
}

# pack NAME SUMMARY
pack() {
  PACKAGE_STAGE=$stage PACKAGE_NAME=$1 PACKAGE_VERSION=$version PACKAGE_SUMMARY=$2 PACKAGE_MAINTAINER=$maintainer \
    cpack -G DEB --config "$here/cpack.cmake" -B "$packages" > "$stage/cpack.log" 2>&1 ||
    { cat "$stage/cpack.log" >&2; exit 1; }
}

package chainfleet-server
package chainfleet-worker
package chainfleet
unit chainfleet-server chainfleet-server.service
unit chainfleet-worker "chainfleet-worker@*.service"
documents=$stage/chainfleet/usr/share/doc/chainfleet
cp -r "$root/docs/guides" "$root/docs/reference" "$root/docs/explanation" "$root/docs/glossary.md" "$documents"
install -D -m 644 -t "$documents/examples" "$root"/deploy/jobs/*.yaml
torch=$stage/chainfleet-worker/usr/lib/chainfleet
install -D -m 644 -t "$torch/torch/lib" "$libtorch"/torch/lib/lib{c10,torch_cpu}.so "$libtorch/torch/lib/libgomp.so.1"
install -D -m 644 -t "$torch/nvidia/cu13/lib" "$libtorch"/nvidia/cu13/lib/lib{cudart,cupti}.so.13
{
  printf '\n/usr/lib/chainfleet/torch is PyTorch, under these licenses:\n\n'
  cat "$libtorch"/torch-*.dist-info/licenses/{LICENSE,NOTICE}
  printf '\n/usr/lib/chainfleet/nvidia is from the CUDA toolkit, under this license:\n\n'
  cat "$libtorch"/nvidia_cuda_runtime-*.dist-info/licenses/License.txt
} >> "$stage/chainfleet-worker/usr/share/doc/chainfleet-worker/copyright"

pack chainfleet "Command line of a service that samples neural network posteriors"
pack chainfleet-server "Coordinator of a service that samples neural network posteriors"
pack chainfleet-worker "Worker of a service that samples neural network posteriors"
rm -rf "$packages/_CPack_Packages"
python3 -B "$root/deploy/sbom.py" "$packages" "$built"/bin/chainfleet{,-server,-worker}
du -h "$packages"/*.deb
