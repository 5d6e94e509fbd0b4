#!/usr/bin/env bash
# Starts a server and a worker with the chainfleet on the PATH, samples a small job, predicts, and stops them. Part of
# tests/run_deb.sh and tests/run_image.sh.
set -euo pipefail
cd "$(mktemp -d)"
trap 'chainfleet down --data-dir data >/dev/null' EXIT
chainfleet up --data-dir data --listen 127.0.0.1:0 --metrics-listen off --workers 1
CHAINFLEET_ADDRESS=127.0.0.1:$(sed 's/.*"grpc": \([0-9]*\).*/\1/' data/run/ports.json)
export CHAINFLEET_ADDRESS
awk 'BEGIN { print "x,y"; for (i = 0; i < 256; i++) print i / 64 "," sin(i / 64) }' > sine.csv
printf 'x\n0.5\n1.5\n' > new.csv
chainfleet dataset put sine sine.csv --target y --target-type float32
cat > sine.yaml <<'JOB'
name: sine
model: {builtin: mlp, hidden: [8]}
dataset: {name: sine}
likelihood: {gaussian: {learned: true}}
sampler: {sghmc: {friction: 0.1}}
step_size: {constant: 1.0e-5}
batch_size: 64
num_epochs: 1000
burn_in: {epochs: 800}
chains: 2
seed: 1
JOB
chainfleet submit -f sine.yaml --follow
chainfleet predict sine --input new.csv --output sine_prediction.csv
cat sine_prediction.csv
awk -F, 'NR > 1 { rows += 1; error = $2 - sin(NR - 1.5); wrong += $2 !~ /^-?[0-9.]+$/ || error * error > 0.04 || !($4 > 0) }
         END { exit rows != 2 || wrong }' sine_prediction.csv || { echo "try_job: these are no predictions of sin(x)" >&2; exit 1; }
echo "try_job: passed"
