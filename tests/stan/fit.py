"""Reads {"program", "data"} as JSON and prints {"parameter[i]": draws} of Stan's sampler, four chains of 1,000 draws."""
import contextlib
import json
import sys

import stan

asked = json.load(sys.stdin)
with contextlib.redirect_stdout(sys.stderr):
    fit = stan.build(asked["program"], data=asked["data"], random_seed=1).sample(num_chains=4, num_samples=1000)
# [parameters, draws, chains] in Stan's order
draws = {f"{name}[{i}]": row.tolist() for name in fit.param_names for i, row in enumerate(fit[name])}
json.dump(draws, sys.stdout)
