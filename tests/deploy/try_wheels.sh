#!/usr/bin/env bash
# Installs the wheels below this script as docs/guides/install.md does, samples and predicts from Python and by the command line, runs the Python
# guide, and says how long it took. Part of tests/run_wheels.sh.
set -euo pipefail
cd "$(dirname "$0")"
say() { printf 'try_wheels: %s\n' "$*"; }
! command -v cc c++ cmake || say "this machine has build tools; they are not used"
export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$HOME/.cache/pip} HOME=$PWD XDG_DATA_HOME=$PWD/data PIP_QUIET=1
trap 'chainfleet down >/dev/null; rm -rf data chainfleet' EXIT
SECONDS=0
. ./type_block.sh
type_block install.md "With pip" 2
say "pip install and up: $SECONDS s, $(du -shL chainfleet | cut -f 1)"
chainfleet doctor
chainfleet down  # the next one takes modules

python - <<'PYTHON'
import numpy, torch, chainfleet as cf
fleet = cf.local(progress=False)
x = numpy.random.default_rng(1).normal(size=(500, 2)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int64")
model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
job = fleet.sample(model, data=(x, y), sampler=cf.EMCMC(eta=4e-4), chains=2, epochs=12, name="first").wait()
p = job.predict(x[:3])
print(p.mean_probability, p.mutual_information, p.error("mutual_information"))
numpy.save("x.npy", x[:3])
open("address", "w").write(",".join(fleet.connection.addresses))
PYTHON
took=$SECONDS
say "from pip install to a prediction from Python: $took s"
[ "$took" -lt 180 ] || { say "failed: that has to be below 180 s" >&2; exit 1; }
CHAINFLEET_ADDRESS=$(cat address) chainfleet get jobs
CHAINFLEET_ADDRESS=$(cat address) chainfleet predict first --input x.npy
CHAINFLEET_ADDRESS=$(cat address) chainfleet doctor
for program in chainfleet chainfleet-server chainfleet-worker; do $program --version; done
chainfleet down
rm -rf data

pip install --find-links build/wheels 'chainfleet[server,arviz,sklearn]'
python - <<'PYTHON'
import doctest, sys
failed, ran = doctest.testfile("python.md", module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
print(f"try_wheels: {ran} lines of the Python guide, {failed} failed")
sys.exit(failed > 0 or ran < 40)
PYTHON
