#!/usr/bin/env bash
# Makes a bare Debian with some packages, copies a folder to /root/try and runs a script of it there, with the network of
# this machine. Needs root and mmdebstrap. Part of tests/run_wheels.sh and tests/run_deb.sh.
#   in_debian.sh PACKAGES FOLDER SCRIPT [SUITE]     PACKAGES: names and paths of .deb files, with commas; SUITE: default bookworm
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "in_debian: needs root" >&2; exit 1; }
debian=$(mktemp -d /var/tmp/chainfleet-debian.XXXXXX)
trap 'rm -rf --one-file-system "$debian"' EXIT
mmdebstrap --quiet --mode=root --variant=minbase --include="ca-certificates,$1" \
  --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount "${4:-bookworm}" "$debian"
cp -r "$2" "$debian/root/try"
cp -L --remove-destination /etc/ssl/certs/ca-certificates.crt "$debian/etc/ssl/certs/"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do [ ! -e $file ] || cp -L --remove-destination $file "$debian/etc/"; done
mapfile -t network < <(env | grep -E '^(PIP_|SSL_CERT_|REQUESTS_CA|https?_proxy=|HTTPS?_PROXY=|no_proxy=|NO_PROXY=)' || true)
# In a namespace of its own: mounts and processes end with it.
unshare --mount --pid --fork --kill-child bash -ec '
  debian=$1 script=$2; shift 2
  mount -t proc proc "$debian/proc"; mount --rbind /dev "$debian/dev"; mount -t tmpfs tmpfs "$debian/tmp"
  exec chroot "$debian" /usr/bin/env -i "$@" HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "/root/try/$script"
' in_debian "$debian" "$3" "${network[@]}"
