#!/usr/bin/env bash
# Samples airfoil or bike sharing with MILE and SMILE and prints RMSE, NLL, seconds and CPU seconds as a table in
# Markdown, beside a deep ensemble of the same networks in the same time, the figures that were published, and the
# authors' package on the same cores. airfoil takes some ten minutes a seed on 2 quiet cores, bikesharing one to
# two hours with 4 chains; not part of the tests.
#   tests/bench/mile_tables.sh DATA [SET] [SEEDS] [BIN] [CHAINS]
# DATA holds SET/data.csv and SET/test_indices.txt; SET: airfoil (default) or bikesharing; SEEDS: default 1; BIN: the
# binaries (default: build/release/bin); CHAINS: of each sampler, also of the package (default 10).
# PYTHON_BDE: a Python with sklearn-contrib-bde 1.0.2; without it no rival runs.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
data=${1:?usage: mile_tables.sh DATA [SET] [SEEDS] [BIN]}
table=${2:-airfoil} seeds=${3:-1} chains=${5:-10}
bin=$(cd "${4:-$here/build/release/bin}" && pwd)
work=$(mktemp -d)
export PATH=$bin:$PATH
trap 'chainfleet down --data-dir "$work/fleet" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
tables() { /usr/bin/python3 "$here/tests/bench/mile_tables.py" "$@"; }
epochs=1000 counts="$((2 * chains)) $chains"  # chains of mile
trial=200                                      # networks whose time tells how many fit into that of mile
[ "$table" = bikesharing ] && epochs=1200 counts=$chains trial=20

rows=$(tables split "$data/$table" "$work")
chainfleet up --data-dir "$work/fleet" --listen 127.0.0.1:0 --metrics-listen off --http-listen off >/dev/null
CHAINFLEET_ADDRESS=127.0.0.1:$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["grpc"])' "$work/fleet/run/ports.json")
export CHAINFLEET_ADDRESS
for part in train test; do chainfleet dataset put "$table-$part" "$work/$part.csv" --target-type float32 >/dev/null; done

# cpu_seconds: those of the workers so far.
cpu_seconds() {
  local file
  for file in "$work"/fleet/run/worker-*.pid; do cat "/proc/$(cat "$file")/stat"; done |
    awk -v ticks="$(getconf CLK_TCK)" '{used += $14 + $15} END {print used / ticks}'
}

# job SEED INIT CHAINS SAMPLER STEPS EVERY [BATCH]: samples, and prints RMSE, NLL, seconds and CPU seconds.
job() {
  local id start=$SECONDS used
  used=$(cpu_seconds)
  cat >"$work/job.yaml" <<YAML
name: table
model: {builtin: mlp, hidden: [16, 16, 16, 16]}
dataset: {name: $table-train}
likelihood: {heteroscedastic_gaussian: {deviation: softplus}}
prior: {gaussian: {precision: 1}}
sampler: {$4}
learning_rate: 0.001
batch_size: ${7:-$rows}
minibatches: independent
num_steps: $5
chains: $3
collect: {every_steps: $6}
seed: $1
init: {$2}
YAML
  id=$(chainfleet submit -f "$work/job.yaml" -o name)
  chainfleet wait "$id" --timeout 86400s >/dev/null 2>&1
  local seconds=$((SECONDS - start))
  used="$(cpu_seconds) - $used"
  chainfleet evaluate "$id" --dataset "$table-test" -o json |
    python3 -c 'import json, sys
row = next(row for row in json.load(sys.stdin)["scores"] if row["what"] == "all")
print(row["rmse"], row["nll"], *sys.argv[1:])' "$seconds" "$(awk "BEGIN {print $used}")"
}

echo "| $table, seed | RMSE | NLL | seconds | CPU seconds |"
echo "| --- | --- | --- | --- | --- |"
# row LABEL COMMAND...: the row of the numbers that the command prints; leaves them in $numbers.
row() {
  local label=$1 text
  shift
  text=$("$@")
  read -r -a numbers <<<"$text"
  printf '| %s | %.4f | %.4f | %.0f | %.0f |\n' "$label" "${numbers[@]}"
}
rival() { "$PYTHON_BDE" "$here/tests/bench/mile_tables.py" rival "$work" "$1" "$epochs" "$chains" 2>/dev/null; }
for seed in $(seq 0 $((seeds - 1))); do
  weights=()
  for i in $(seq 0 $((2 * chains - 1))); do
    tables start "$seed" "$i" "$work/start.safetensors" "$data/$table"
    chainfleet model put "start-$seed-$i" "$work/start.safetensors" >/dev/null
    weights+=("start-$seed-$i")
  done
  # from CHAINS: the first of these starts.
  from() { local IFS=,; echo "weights: [${weights[*]:0:$1}]"; }
  for count in $counts; do
    row "mile, $count chains, $seed" \
      job "$seed" "$(from "$count")" "$count" "mile: {optimizer_steps: $epochs}" $((epochs + 51000)) 10
  done
  budget=${numbers[3]}
  for share in 0.1 1; do
    row "smile, noise_share $share, batches of 256, $chains chains, $seed" \
      job "$seed" "$(from "$chains")" "$chains" "smile: {noise_share: $share}" 105000 100 256
  done
  # A deep ensemble: AdamW to the best point of a validation part, and one step of the dynamics that goes nowhere.
  descent="warm_up_steps: 0, initial_step: 1.0e-9, decoherence_length: 1"
  row "deep ensemble, $chains networks, as mile starts, $seed" \
    job "$seed" "$(from "$chains")" "$chains" "mile: {optimizer_steps: $epochs, $descent}" $((epochs + 1)) 1
  # ensemble NETWORKS: the same of more networks, each to 5000 steps or 100 without a better point.
  ensemble() { job "$seed" "" "$1" "mile: {optimizer_steps: 5000, patience: 100, $descent}" 5001 1; }
  row "deep ensemble, $trial networks, $seed" ensemble "$trial"
  networks=$(awk "BEGIN {print int($trial * $budget / ${numbers[3]})}")
  row "deep ensemble, $networks networks, the CPU seconds of mile, $seed" ensemble "$networks"
  [ -z "${PYTHON_BDE:-}" ] || row "sklearn-contrib-bde, $chains members, $seed" rival "$seed"
done
tables published "$table"
