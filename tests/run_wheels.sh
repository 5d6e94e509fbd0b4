#!/usr/bin/env bash
# Makes the wheels and installs them as a user does: into an empty virtual environment here, and in a bare Debian 12 that has
# python3-venv, the data set of the guide and no build tools. pip downloads torch (2.6 GB) each time. The bare Debian needs root and 9 GB.
#   tests/run_wheels.sh [here] [bare] [trixie]     default: here and bare; trixie: a bare Debian 13, with Python 3.13
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- here bare
deploy/install_deps.sh --with-tests
. tests/deploy/type_block.sh
type_block docs/guides/install.md "With pip" 1
folder=$(mktemp -d /var/tmp/chainfleet-wheels.XXXXXX)
trap 'rm -rf --one-file-system "$folder"' EXIT
mkdir -p "$folder/build/wheels"
cp build/wheels/*.whl "$folder/build/wheels"
cp tests/deploy/{try_wheels,type_block}.sh docs/guides/{install,python}.md "$folder"
for place in "$@"; do
  echo "run_wheels: $place"
  case $place in
    here) env PATH=/usr/bin:/bin "$folder/try_wheels.sh" ;;
    trixie) tests/deploy/in_debian.sh python3-venv,dataset-fashion-mnist "$folder" try_wheels.sh trixie ;;
    bare) tests/deploy/in_debian.sh python3-venv,dataset-fashion-mnist "$folder" try_wheels.sh ;;
    *) sed -n '2,4p' "$0"; exit 2 ;;
  esac
done
