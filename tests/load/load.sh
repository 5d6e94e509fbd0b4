#!/usr/bin/env bash
# How a real server bears a fleet: 1,000 workers without compute, 20,000 chains, 2,000 commits a second of inline resume
# points, on SQLite or on PostgreSQL; then what its memory does as draws are committed. All the while its metrics are
# scraped, every 2 s. This fails when a scrape takes more than 50 ms in the median, or has more than 1 MB; when a call
# fails, other than for want of a connection before the jobs are submitted; when the second half commits less than 0.95
# of --commits; and, with --draws, when the server's memory grows by more than 200 bytes with each draw.
#   tests/load/load.sh sqlite|postgres BIN [chainfleet-load options]
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
store=${1:?usage: load.sh sqlite|postgres BIN [options]}
bin=$(cd "${2:?the folder of the binaries}" && pwd)
shift 2
if [ "$store" = postgres ] && [ -z "${CHAINFLEET_TEST_POSTGRES:-}" ]; then
  exec python3 -B "$here/tests/support/with_postgres.py" --durable "$0" postgres "$bin" "$@"
fi
work=$(mktemp -d)
trap 'kill "$server" ${scraper:-} 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
if [ "$store" = postgres ]; then export CHAINFLEET_STATE=$CHAINFLEET_TEST_POSTGRES/postgres; fi
"$bin/chainfleet-server" --data-dir "$work/data" --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 --http-listen off --port-file "$work/ports.json" \
  --tenant-chains 1000000 --log-level warning &
server=$!
until [ -s "$work/ports.json" ]; do kill -0 "$server"; sleep 0.1; done
port() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/ports.json" "$1"; }
scrape() { while sleep 2; do curl -s -o /dev/null -w '%{time_total} %{size_download}\n' "http://127.0.0.1:$1/metrics"; done; }
scrape "$(port metrics)" > "$work/scrapes" &
scraper=$!
failed=0
"$bin/chainfleet-load" --address "127.0.0.1:$(port grpc)" --server-pid "$server" "$@" || failed=1
python3 - "$work/scrapes" <<'EOF'
import sys
seconds, sizes = zip(*((float(a), int(b)) for a, b in map(str.split, open(sys.argv[1]))))
median = 1e3 * sorted(seconds)[len(seconds) // 2]
print(f"{'scrapes':22} p50 {median:.1f} ms, largest {1e3 * max(seconds):.1f} ms, {max(sizes) / 1e3:.0f} KB, of {len(seconds)}")
if median > 50 or max(sizes) > 1e6:
    sys.exit("load.sh: a scrape should take 50 ms and 1 MB at most")
EOF
exit $failed
