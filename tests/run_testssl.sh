#!/usr/bin/env bash
# Runs testssl.sh against the ports of a server with TLS: gRPC, HTTP and metrics. Fails if a finding is graded above LOW, except that
# certificates of `chainfleet pki` name no revocation list: a private authority has none. Two minutes. Not part of run_all.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v testssl > /dev/null || { echo "run_testssl: apt-get install testssl.sh" >&2; exit 1; }
[ -n "${CHAINFLEET_BIN:-}" ] || deploy/build.sh chainfleet chainfleet-server
bin=${CHAINFLEET_BIN:-$PWD/build/release/bin}
folder=$(mktemp -d /var/tmp/chainfleet-testssl.XXXXXX)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$folder"' EXIT
"$bin/chainfleet" pki init --folder "$folder"
"$bin/chainfleet" pki issue server --folder "$folder" --host localhost
read -r grpc http metrics < <(python3 -c 'import socket
taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(one.getsockname()[1] for one in taken))')
CHAINFLEET_TOKEN=$(openssl rand -hex 32) "$bin/chainfleet-server" --data-dir "$folder/data" --listen "127.0.0.1:$grpc" \
  --http-listen "127.0.0.1:$http" --metrics-listen "127.0.0.1:$metrics" --tls-cert "$folder/server.crt" --tls-key "$folder/server.key" \
  --metrics-tls-cert "$folder/server.crt" --metrics-tls-key "$folder/server.key" 2> "$folder/log" &
server=$!
until grep -q '"serving"' "$folder/log"; do kill -0 "$server"; done
for port in "$grpc" "$http" "$metrics"; do
  # Its exit status counts warnings, so the findings decide.
  testssl --quiet --color 0 --severity LOW --warnings batch --add-ca "$folder/ca.crt" --jsonfile "$folder/$port.json" "localhost:$port" || true
done
python3 - "$folder/$grpc.json" "$folder/$http.json" "$folder/$metrics.json" <<'PYTHON'
import json, sys
high = []
for path in sys.argv[1:]:
    with open(path) as file:
        found = json.load(file)
    assert found, "testssl.sh found nothing at all"
    high += [(one["id"], one["finding"]) for one in found if one["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL") and one["id"] != "cert_revocation"]
sys.exit(f"run_testssl: {high}" if high else print("run_testssl: passed"))
PYTHON
