#!/usr/bin/env bash
# The stages of run.sh on the fake GPU, in a system without Debian's development packages, our libraries and any network:
# this host's own files, less those, in a file system laid over them. Needs root, and LibTorch where the build has it.
#   tests/gpu/rehearse.sh [STAGE...]      default: a b c; the build of stage a takes minutes per core
#   CHAINFLEET_BUILD   as for pack.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- a b c
root=$(mktemp -d /var/tmp/chainfleet-rehearsal.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir -p "$root"/{upper,work,system}
"$here/pack.sh" --fake "$root/bundle"
torch=$(sed -n 's/^CHAINFLEET_TORCH_ROOT:PATH=//p' "${CHAINFLEET_BUILD:-$here/../../build/release}/CMakeCache.txt")

# All development packages but the compiler's own, and the packages of the libraries that only we use.
dpkg-query -W -f '${Package}\n' |
  grep -E -- '-dev$|^(libabsl|libgrpc|libprotobuf|libprotoc|libhwy|libspdlog|libfmt|libpqxx|libyaml-cpp|libprometheus|libmicrohttpd|libpugixml|libzip|libblosc|libsodium|libseccomp|libre2|libupb|googletest|pkg-config|ccache)' |
  grep -vE '^(libc6|libstdc|libgcc|linux-libc|libcrypt)' | xargs dpkg -L | sort -u |
  while read -r path; do [ -d "$path" ] || echo "$path"; done > "$root/hidden"
echo "rehearse: $(wc -l < "$root/hidden") files of this host are hidden"

unshare --mount --net --pid --fork --kill-child bash -c '
  set -euo pipefail
  root=$1 torch=$2; shift 2
  ip link set lo up
  mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/system"
  (cd "$root/system" && sed s,^/,, "$root/hidden" | xargs rm -f)
  mkdir "$root/system/bundle"; mount --bind "$root/bundle" "$root/system/bundle"
  mount -t proc proc "$root/system/proc"; mount --rbind /dev "$root/system/dev"; mount -t tmpfs tmpfs "$root/system/tmp"
  failed=0
  for stage in "$@"; do
    chroot "$root/system" env -i PATH=/usr/local/cuda/bin:"$PATH" HOME=/nonexistent CHAINFLEET_TORCH_ROOT="$torch" OMP_NUM_THREADS=1 \
      bash /bundle/src/tests/gpu/run.sh "$stage" --rehearse || failed=1
  done
  exit $failed' rehearse "$root" "$torch" "$@"
