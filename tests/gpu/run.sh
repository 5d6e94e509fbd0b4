#!/usr/bin/env bash
# Measures chainfleet on a host with a GPU, from an unpacked bundle of pack.sh. Each stage takes at most nine minutes,
# prints tables and writes one file of JSON; a part that fails is recorded, the others run, and the exit status is 1.
#   tests/gpu/run.sh a|b|c [--out DIR] [--rehearse]      DIR: default $OUT, else the folder of the bundle
#   a   build, parity with the CPU, ceilings of the card, a table of convolutions, compute-sanitizer
#   b   chain-steps per second by network, chains and precision, against PyTorch and JAX
#   c   the service end to end: a worker is killed, another continues
#   --rehearse   small sizes, for a host without a GPU and a bundle made with --fake
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '2,8p' "$0"; exit 2; }
case ${1:-} in a | b | c) ;; *) usage ;; esac
export OMP_WAIT_POLICY=passive XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONUNBUFFERED=1 PATH=$PATH:/usr/local/cuda/bin
exec python3 -B "$here/stages.py" "$@"
