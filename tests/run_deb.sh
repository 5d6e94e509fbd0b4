#!/usr/bin/env bash
# Makes the Debian packages, has lintian check them, installs them in a bare Debian 12 and runs a job there. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/install_deps.sh --with-tests
. tests/deploy/type_block.sh
type_block docs/guides/install.md "As Debian packages" 1
lintian --fail-on error,warning --tag-display-limit 0 --allow-root --suppress-tags-from-file deploy/deb/lintian-tags build/deb/*.deb
folder=$(mktemp -d /var/tmp/chainfleet-deb.XXXXXX)
trap 'rm -rf "$folder"' EXIT
cp tests/deploy/{try_deb,try_job,type_block}.sh docs/guides/install.md build/deb/*.deb "$folder"
tests/deploy/in_debian.sh "man-db,systemd,$(printf '%s\n' "$PWD"/build/deb/*.deb | paste -sd ,)" "$folder" try_deb.sh
