#!/usr/bin/env bash
# The main job, end to end, on this machine: builds chainfleet, starts a server and two workers on embedded stores, samples
# four Entropy-MCMC chains of lenet5 on Fashion-MNIST, and prints the scores of single draws and of their average.
#   deploy/quickstart.sh [--keep] [--data-dir DIR]     --keep leaves the service up and says how to use and stop it
#   DIR: default build/quickstart. CHAINFLEET_PORT: gRPC port (default 7400)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
keep=0
data=$root/build/quickstart
while [ $# -gt 0 ]; do
  case $1 in
    --keep) keep=1 ;;
    --data-dir) data=${2:?--data-dir takes a folder}; shift ;;
    *) sed -n '2,5p' "$0"; exit 2 ;;
  esac
  shift
done
step() { printf '\n== %s\n' "$*"; }

step "Set-up and build"
"$root/deploy/build.sh" chainfleet-server chainfleet-worker chainfleet
export PATH=$root/build/release/bin:$PATH
unset CHAINFLEET_CONTEXT  # it would win over the address
export CHAINFLEET_ADDRESS=127.0.0.1:${CHAINFLEET_PORT:-7400}
fashion=/usr/share/datasets/fashion-mnist
started=$SECONDS

step "A server and two workers (data in $data)"
stop() { chainfleet down --data-dir "$data"; }
[ $keep = 1 ] || trap stop EXIT
chainfleet up --data-dir "$data" --listen "$CHAINFLEET_ADDRESS" --workers 2

step "Data sets: Fashion-MNIST, and 2,000 MNIST digits as out-of-distribution inputs"
chainfleet dataset put fashion-mnist "$fashion"/train-{images-idx3,labels-idx1}-ubyte.gz
chainfleet dataset put fashion-mnist-test "$fashion"/t10k-{images-idx3,labels-idx1}-ubyte.gz
chainfleet dataset put mnist-digits "$root"/deploy/data/mnist-2000-{images-idx3,labels-idx1}-ubyte.gz

step "Sampling: deploy/jobs/fashion-emcmc.yaml"
job=$(chainfleet submit -f "$root/deploy/jobs/fashion-emcmc.yaml" --follow -o name)
chainfleet get chains "$job"
if chainfleet describe "$job" | grep WARNING; then
  echo "quickstart: the job has warnings" >&2
  exit 1
fi
cat <<'TEXT'
R-hat compares what the chains predict for four training images. Far above 1.01 it means that they disagree: after 12
epochs each samples a region of its own, which is usual for networks. An average over them gains all the same: compare "mean
single draw" with "all draws" below. `describe` shows the Monte Carlo error of each predicted probability (MCSE). What to believe:
docs/guides/diagnostics.md
TEXT

step "Bayesian model average of $job on 10,000 test images; out of distribution: MNIST digits"
chainfleet evaluate "$job" --dataset fashion-mnist-test --ood mnist-digits

printf '\nquickstart: done in %d s after the build\n' $((SECONDS - started))
if [ $keep = 1 ]; then
  cat <<TEXT
The service is still up:
  export PATH=$root/build/release/bin:\$PATH CHAINFLEET_ADDRESS=$CHAINFLEET_ADDRESS
  chainfleet describe $job
  chainfleet predict $job --input $fashion/t10k-images-idx3-ubyte.gz --output predictions.npz
  chainfleet down --data-dir $data      # stops it
TEXT
fi
