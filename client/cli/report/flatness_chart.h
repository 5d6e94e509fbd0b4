// How sharply the likelihood bends around each chain's newest draw. Pure functions.
#pragma once

#include <optional>

#include "chainfleet/v1/predict.pb.h"
#include "client/cli/report/figure.h"

namespace chainfleet {

// Each gives nothing without flatness.

// The diagonal Fisher spectrum by rank, both axes logarithmic.
std::optional<Figure> FisherFigure(const v1::Evaluation& evaluation);

// Mean NLL along a random direction, and from theta to theta_a.
std::optional<Figure> LinesFigure(const v1::Evaluation& evaluation);

}  // namespace chainfleet
