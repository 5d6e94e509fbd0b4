#!/usr/bin/env bash
# Trains and scores the samplers on real MNIST and prints accuracy, NLL, ECE and the entropy on notMNIST, and the papers'
# figures (an empty cell: they give none), as a table in Markdown. About twenty minutes on 2 quiet cores; not part of the
# tests.
#   tests/bench/mnist_tables.sh DATA [BIN] [mnist|fashion-mnist|scan] [ROWS]
# DATA holds mnist/ and notmnist/ with the IDX files (train-images-idx3-ubyte.gz, ..., notMNIST_small-images-idx3-ubyte.gz);
# BIN the binaries (default: build/release/bin). fashion-mnist: the same networks on the images of Debian's package
# dataset-fashion-mnist. scan: gradient uncertainty of the five-layer CNN by prior, threshold and temperature. ROWS: an
# extended regular expression; only rows whose label it matches are run.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
data=${1:?usage: mnist_tables.sh DATA [BIN] [mnist|fashion-mnist|scan]}
what=${3:-mnist} rows=${4:-.}
images=$data/mnist title=MNIST paper="98.05 %, 1.355 nats"
[ "$what" = fashion-mnist ] && images=/usr/share/datasets/fashion-mnist title=Fashion-MNIST paper=""
bin=$(cd "${2:-$here/build/release/bin}" && pwd)
work=$(mktemp -d)
export PATH=$bin:$PATH
trap 'chainfleet down --data-dir "$work/fleet" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

say() { echo "mnist_tables: $*" >&2; }

# seven_or_nine STEM: the rows of the two classes under their own IDX files, labels 0 and 1.
seven_or_nine() {
  python3 - "$data/mnist/$1" "$work/$1" <<'PY'
import gzip, struct, sys
source, target = sys.argv[1:]
labels = gzip.open(f"{source}-labels-idx1-ubyte.gz").read()[8:]
images = gzip.open(f"{source}-images-idx3-ubyte.gz").read()[16:]
rows = [i for i, label in enumerate(labels) if label in (7, 9)]
with gzip.open(f"{target}-labels-idx1-ubyte.gz", "wb") as f:
    f.write(struct.pack(">II", 0x801, len(rows)) + bytes(labels[i] == 9 for i in rows))
with gzip.open(f"{target}-images-idx3-ubyte.gz", "wb") as f:
    f.write(struct.pack(">IIII", 0x803, len(rows), 28, 28) + b"".join(images[784 * i:784 * (i + 1)] for i in rows))
PY
}

put() { chainfleet dataset put "$1" "$2-images-idx3-ubyte.gz" "$2-labels-idx1-ubyte.gz" >/dev/null; }

# row LABEL DATA OOD PAPER: samples the job on standard input, scores it on DATA-test and prints a row.
row() {
  local job
  cat >"$work/job.yaml"
  [[ $1 =~ $rows ]] || return 0
  say "$1"
  job=$(chainfleet submit -f "$work/job.yaml" -o name)
  chainfleet wait "$job" --timeout 3600s >/dev/null
  chainfleet evaluate "$job" --dataset "$2-test" ${3:+--ood "$3"} --timeout 3600s -o json | python3 -c '
import json, sys
label, paper = sys.argv[1:]
row = next(row for row in json.load(sys.stdin)["scores"] if row["what"] == "all")
ood = row.get("ood_mean_predictive_entropy")
draws, accuracy, nll, ece = row["num_draws"], 100 * row["accuracy"], row["nll"], 100 * row["ece"]
entropy = "" if ood is None else f"{ood:.3f}"
print(f"| {label} | {draws} | {accuracy:.2f} | {nll:.4f} | {ece:.2f} | {entropy} | {paper} |", flush=True)' "$1" "$4"
}

# network SAMPLER MODEL: a job for MNIST; 4 chains, two cycles of three epochs, the last epoch of each kept.
network() {
  cat <<YAML
name: table
model: {builtin: $2}
dataset: {name: mnist}
prior: {gaussian: {precision: 30}}
sampler: {$1}
learning_rate: {cyclical: {initial: 0.1, cycles: 2}}
temperature: 1.0e-4
batch_size: 128
num_epochs: 6
chains: 4
collect: {last_epochs_of_cycle: 1}
seed: 3
YAML
}

# ensemble: as many networks from starts of their own, with as many gradients.
ensemble() {
  network "sgd: {momentum: 0.9}" lenet5 | sed 's/0.1, cycles: 2/0.02/; s/num_epochs: 6/num_epochs: 3/; s/chains: 4/chains: 8/'
}

# uncertainty MODEL: gradient uncertainty keeps theta where GU is low, 15 draws a chain after burn-in.
uncertainty() {
  cat <<YAML
name: table
model: {builtin: $1}
dataset: {name: mnist}
prior: {gaussian: {precision: 30}}
sampler: {gradient_uncertainty: {}}
learning_rate: {constant: 0.02}
temperature: 1.0e-4
batch_size: 128
num_epochs: 6
burn_in: {epochs: 3}
chains: 4
collect: {every_steps: 90}
seed: 3
YAML
}

# regression SAMPLER: softmax regression of 7 against 9.
regression() {
  cat <<YAML
name: table
model: {builtin: softmax_regression}
dataset: {name: seven-nine}
prior: {gaussian: {precision: 12}}
sampler: {$1}
learning_rate: {cyclical: {initial: 0.05, cycles: 4}}
batch_size: 128
num_epochs: 40
burn_in: {cycles: 1}
chains: 4
collect: {last_epochs_of_cycle: 5}
seed: 3
YAML
}

# uncertainty_of_two: the same on softmax regression of 7 against 9.
uncertainty_of_two() {
  uncertainty softmax_regression | sed 's/name: mnist}/name: seven-nine}/; s/precision: 30/precision: 12/; s/num_epochs: 6/num_epochs: 24/; s/epochs: 3}/epochs: 10}/'
}

# scan PRECISION QUANTILE TEMPERATURE: the same of the five-layer CNN, two chains of two epochs.
scan() {
  uncertainty cnn5 | sed "s/precision: 30/precision: $1/; s/uncertainty: {}/uncertainty: {quantile: $2}/; s/1.0e-4/$3/
    s/num_epochs: 6/num_epochs: 2/; s/epochs: 3}/epochs: 1}/; s/chains: 4/chains: 2/; s/every_steps: 90/every_steps: 60/" |
    row "precision $1, quantile $2, T = $3" mnist notmnist ""
}

# penalty MODEL STEP: penalised random walks on 20 batches; the likelihood counts as 500 examples, so that the noise of
# 2,000 is one the penalty can correct.
penalty() {
  cat <<YAML
name: table
model: {$1}
dataset: {name: seven-nine}
prior: {gaussian: {precision: 12}}
sampler: {penalty_mh: {num_batches: 20, effective_data_size: 500}}
step_size: {constant: $2}
batch_size: 100
num_steps: 20000
burn_in: {steps: 10000}
chains: 4
collect: {every_steps: 200}
seed: 3
YAML
}

for stem in train t10k; do seven_or_nine "$stem"; done
chainfleet up --data-dir "$work/fleet" --workers 2 --threads 1 --listen 127.0.0.1:0 --metrics-listen off >/dev/null
CHAINFLEET_ADDRESS=127.0.0.1:$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["grpc"])' "$work/fleet/run/ports.json")
export CHAINFLEET_ADDRESS
put mnist "$images/train"; put mnist-test "$images/t10k"; put notmnist "$data/notmnist/notMNIST_small"
put seven-nine "$work/train"; put seven-nine-test "$work/t10k"

echo "| what | networks | accuracy % | NLL | ECE % | notMNIST entropy, nats | the papers |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
if [ "$what" = scan ]; then
  for precision in 30 300 3000; do scan "$precision" 0.5 1.0e-4; done
  for quantile in 0.2 0.8; do scan 300 "$quantile" 1.0e-4; done
  for temperature in 0.01 1; do scan 30 0.5 "$temperature"; done
  exit
fi
network "sgld: {}" lenet5 | row "lenet5, $title, SGLD" mnist notmnist ""
network "emcmc: {}" lenet5 | row "lenet5, $title, EMCMC" mnist notmnist ""
network "entropy_sgld: {}" lenet5 | row "lenet5, $title, Entropy-SGLD" mnist notmnist ""
ensemble | row "lenet5, $title, deep ensemble" mnist notmnist ""
uncertainty lenet5 | row "lenet5, $title, gradient uncertainty" mnist notmnist ""
uncertainty cnn5 | row "five-layer CNN, $title, gradient uncertainty" mnist notmnist "$paper"
[ "$what" = mnist ] || exit 0
regression "sgld: {}" | row "softmax regression, 7 or 9, SGLD, T = 1" seven-nine "" ""
regression "emcmc: {}" | row "softmax regression, 7 or 9, EMCMC, T = 1" seven-nine "" ""
regression "entropy_sgld: {}" | row "softmax regression, 7 or 9, Entropy-SGLD, T = 1" seven-nine "" ""
uncertainty_of_two | row "softmax regression, 7 or 9, gradient uncertainty" seven-nine "" ""
penalty "builtin: softmax_regression" 1.0e-2 | row "softmax regression, 7 or 9, penalty MH, 500 examples' worth" seven-nine "" ""
penalty "builtin: mlp, hidden: [16]" 7.0e-3 | row "mlp 784-16-2, 7 or 9, penalty MH, 500 examples' worth" seven-nine "" ""
