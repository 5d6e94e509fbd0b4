#!/bin/sh
# Runs a command where it may mount and make networks: as it is for root, else as root of namespaces of its own. Where those
# are forbidden it runs all the same, and what needs them is skipped and counted.
if [ "$(id -u)" != 0 ] && unshare --user --map-root-user --net --mount true 2> /dev/null; then
  exec unshare --user --map-root-user --net --mount sh -c 'ip link set lo up; exec "$@"' sh "$@"
fi
exec "$@"
