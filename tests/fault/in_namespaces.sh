#!/bin/sh
# Runs a command where it may mount and make networks, in namespaces of its own, whose root it is: two runs on one machine do not
# meet, and nothing of them stays. Where those are forbidden it runs all the same, and what needs them is skipped and counted.
[ "$(id -u)" = 0 ] || user="--user --map-root-user"
# shellcheck disable=SC2086
if unshare ${user:-} --net --mount true 2> /dev/null; then
  exec unshare ${user:-} --net --mount sh -c 'ip link set lo up; exec "$@"' sh "$@"
fi
exec "$@"
