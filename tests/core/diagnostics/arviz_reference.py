"""Writes arviz_reference.h: what ArviZ says of traces that diagnostics_test.cc makes again, bit for bit.

    pip install arviz==0.23.4
    python3 arviz_reference.py > arviz_reference.h
"""

import math
import warnings

import arviz
import numpy
from arviz.stats import diagnostics

SETS = [  # name, chains, draws, what differs from Recipe's defaults
    ("independent", 4, 100, {}),
    ("slow", 4, 500, {"phi": 0.95}),
    ("random walk", 2, 1000, {"phi": 0.999}),
    ("antithetic", 4, 200, {"phi": -0.9}),
    ("alternating", 2, 60, {"phi": -1.0}),
    ("constant", 4, 50, {"width": 0.0, "offset": 2.5}),
    ("all chains still, each elsewhere", 3, 20, {"still": 3}),
    ("one chain still", 4, 100, {"still": 1}),
    ("shifted", 4, 250, {"shift": 0.25}),
    ("of different widths", 4, 250, {"phi": 0.5, "scale": 1.0}),
    ("drifting", 4, 150, {"drift": 0.01}),
    ("heavy tails", 4, 300, {"phi": 0.3, "shape": "kInverse"}),
    ("ties", 4, 120, {"shape": "kFifths"}),
    ("two values", 2, 90, {"phi": 0.6, "shape": "kSign"}),
    ("held states", 3, 400, {"phi": 0.5, "hold": 7}),
    ("far from zero", 4, 200, {"phi": 0.8, "offset": 1e5}),
    ("tiny", 2, 50, {"width": 1e-18}),
    ("NaN", 4, 50, {"spoilt": math.nan}),
    ("infinite", 4, 50, {"spoilt": math.inf}),
    ("four draws", 4, 4, {}),
    ("odd", 3, 5, {}),
    ("seven draws of two chains", 2, 7, {"phi": 0.7}),
    ("three draws", 4, 3, {}),
    ("one chain", 1, 101, {"phi": 0.4}),
    ("many chains", 64, 20, {"phi": 0.6}),
    ("full windows", 16, 1000, {"phi": 0.9}),
]
DEFAULTS = {"phi": 0.0, "shape": "kAsItIs", "width": 1.0, "scale": 0.0, "shift": 0.0, "drift": 0.0, "offset": 0.0,
            "hold": 1, "still": 0, "spoilt": 0.0}
SHAPES = {"kAsItIs": lambda y: y, "kInverse": lambda y: 1 / y, "kFifths": lambda y: math.floor(5 * y),
          "kSign": lambda y: 1.0 if y > 0 else -1.0}


def draws(chains, length, r):
    """The same arithmetic as Draws() of diagnostics_test.cc."""
    state, values = 2021, []
    for chain in range(chains):
        y = 0.0
        for i in range(length):
            if i % r["hold"] == 0 and (i == 0 or chain >= r["still"]):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                y = r["phi"] * y + ((state >> 11) + 0.5) / 2**53 - 0.5
            x = SHAPES[r["shape"]](y) * r["width"]
            values.append(x * (1 + r["scale"] * chain) + r["shift"] * chain + r["drift"] * i + r["offset"])
    if r["spoilt"] != 0:
        values[length // 2] = r["spoilt"]
    return numpy.array(values).reshape(chains, length)


def statistics(x):
    return [diagnostics._rhat_rank(x), arviz.ess(x, method="bulk"), arviz.ess(x, method="tail"),
            arviz.ess(x, method="mean"), arviz.ess(x, method="quantile", prob=0.25), arviz.mcse(x, method="mean")]


def number(x):
    x = float(x)
    return "kNan" if math.isnan(x) else "kInfinity" if math.isinf(x) else repr(x)


HEAD = """// Written by arviz_reference.py: recipes of traces, and what ArviZ %s says of them.
#pragma once

#include <cstdint>
#include <limits>

namespace chainfleet::testing {

enum class Shape { kAsItIs, kInverse, kFifths, kSign };

// The recipe of a set of traces, [chains, draws]: see draws() of the script.
struct Recipe {
  const char* name;
  int64_t chains, draws;
  double phi;
  Shape shape;
  double width, scale, shift, drift, offset;
  int64_t hold, still;
  double spoilt;
};

struct ArvizReference {
  Recipe recipe;
  double rhat, ess_bulk, ess_tail, ess_mean, ess_lower_quarter, mcse_mean;
};

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// clang-format off
inline constexpr ArvizReference kArvizReferences[] = {"""


def main():
    warnings.simplefilter("ignore")
    numpy.seterr(all="ignore")
    print(HEAD % arviz.__version__)
    for name, chains, length, changes in SETS:
        recipe = {**DEFAULTS, **changes}
        fields = ", ".join("Shape::" + v if k == "shape" else str(v) if isinstance(v, int) else number(v)
                           for k, v in recipe.items())
        results = ", ".join(number(v) for v in statistics(draws(chains, length, recipe)))
        print(f'    {{{{"{name}", {chains}, {length}, {fields}}},\n     {results}}},')
    print("};\n// clang-format on\n\n}  // namespace chainfleet::testing")


main()
