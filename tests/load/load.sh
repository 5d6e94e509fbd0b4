#!/usr/bin/env bash
# How a real server bears a fleet: 1,000 workers without compute, 20,000 chains, 2,000 commits a second of inline resume
# points, on SQLite or on PostgreSQL; then what its memory does as draws are committed.
#   tests/load/load.sh sqlite|postgres BIN [chainfleet-load options]
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
store=${1:?usage: load.sh sqlite|postgres BIN [options]}
bin=$(cd "${2:?the folder of the binaries}" && pwd)
shift 2
if [ "$store" = postgres ] && [ -z "${CHAINFLEET_TEST_POSTGRES:-}" ]; then
  exec python3 -B "$here/tests/support/with_postgres.py" "$0" postgres "$bin" "$@"
fi
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
if [ "$store" = postgres ]; then export CHAINFLEET_STATE=$CHAINFLEET_TEST_POSTGRES/postgres; fi
"$bin/chainfleet-server" --data-dir "$work/data" --listen 127.0.0.1:0 --metrics-listen off --port-file "$work/ports.json" \
  --log-level warning &
server=$!
until [ -s "$work/ports.json" ]; do kill -0 "$server"; sleep 0.1; done
port=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["grpc"])' "$work/ports.json")
"$bin/chainfleet-load" --address "127.0.0.1:$port" --server-pid "$server" "$@"
