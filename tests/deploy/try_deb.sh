#!/usr/bin/env bash
# Runs a job with the installed packages, and removes them. Part of tests/run_deb.sh.
set -euo pipefail
cd "$(dirname "$0")"
for program in chainfleet chainfleet-server chainfleet-worker; do
  $program --version
  man $program > page
  grep -q "^NAME" page
done
systemd-analyze verify --man=no chainfleet-server.service chainfleet-worker@cpu.service
./try_job.sh
dpkg --purge chainfleet-worker chainfleet-server chainfleet
left=$(find /etc /usr /var/lib -xdev -name '*chainfleet*')
[ -z "$left" ] || { echo "try_deb: left behind: $left" >&2; exit 1; }
echo "try_deb: passed"
