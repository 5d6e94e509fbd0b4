#!/usr/bin/env bash
# Builds the container image on a base that mmdebstrap makes here, and runs a job in it. Needs root, and namespaces: it is
# skipped where they are forbidden. The network is this machine's.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/install_deps.sh --with-tests
unshare --mount true 2>/dev/null || { echo "run_image: skipped: this machine forbids namespaces"; exit 0; }
deploy/deb/build.sh
folder=$(mktemp -d /var/tmp/chainfleet-image.XXXXXX)
trap 'rm -rf --one-file-system "$folder"' EXIT
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
build() { buildah --root "$folder/store" --runroot "$folder/run" "$@"; }
mmdebstrap --quiet --mode=root --variant=minbase bookworm "$folder/base.tar"
printf 'FROM scratch\nADD base.tar /\n' > "$folder/Dockerfile"
build bud --quiet --tag debian:12-slim "$folder"
build bud --quiet --pull-never --file deploy/docker/Dockerfile --tag chainfleet build/deb
build images
container=$(build from --pull-never chainfleet)
build copy --quiet "$container" tests/deploy/try_job.sh /usr/bin/
build run "$container" /usr/bin/try_job.sh
build run "$container" dpkg-query -W -f '${Package}\n' | python3 -B tests/deploy/image_packages.py
build run "$container" id
