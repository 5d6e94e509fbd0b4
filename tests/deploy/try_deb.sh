#!/usr/bin/env bash
# Installs the packages next to this script as docs/guides/install.md does, runs a job with them, and removes them. They were
# installed once already, so that all that they depend on is there. Part of tests/run_deb.sh.
set -euo pipefail
cd "$(dirname "$0")"
remove() { dpkg --purge chainfleet-worker chainfleet-server chainfleet; }
remove
export SYSTEMD_OFFLINE=1
systemctl() { command systemctl "${@/#--now/--quiet}"; }  # no systemd runs here: units are enabled and not started
. ./type_block.sh
type_block install.md "As Debian packages" 2
type_block install.md "As Debian packages" 3
systemctl is-enabled chainfleet-server chainfleet-worker@cpu
for program in chainfleet chainfleet-server chainfleet-worker; do
  $program --version
  man $program > page
  grep -q "^NAME" page
done
systemd-analyze verify --man=no chainfleet-server.service chainfleet-worker@cpu.service
./try_job.sh
systemctl disable chainfleet-server chainfleet-worker@cpu
rm -r /etc/chainfleet
remove
left=$(find /etc /usr /var/lib -xdev -name '*chainfleet*')
[ -z "$left" ] || { echo "try_deb: left behind: $left" >&2; exit 1; }
echo "try_deb: passed"
