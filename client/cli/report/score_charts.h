// The charts of an evaluation's scores: calibration, entropies, and how averages improve with draws. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "chainfleet/v1/predict.pb.h"
#include "client/cli/report/figure.h"

namespace chainfleet {

// The average over the most draws, which the report is about: "all", else the last of the averages. Null without
// scores.
const v1::Scores* BestAverage(const v1::Evaluation& evaluation);

// The mean over single draws (of theta, if kept), which averages are held against. Null without one.
const v1::Scores* SingleDraws(const v1::Evaluation& evaluation);

// Each gives nothing if the evaluation lacks its numbers.

// Accuracy by confidence in equal-width bins, with the rows in each.
std::optional<Figure> ReliabilityFigure(const v1::Evaluation& evaluation);

// Share of rows by predictive entropy, in and out of distribution. `num_classes` K: bins lie over [0, log K] nats; 0 if
// it is not known, then they are told as shares of log K.
std::optional<Figure> EntropyFigure(const v1::Evaluation& evaluation, int64_t num_classes);

// NLL, accuracy and ECE of the average over the first draws of every chain.
std::optional<Figure> CurveFigure(const v1::Evaluation& evaluation);

}  // namespace chainfleet
