// How scores fall on corrupted inputs. Pure functions.
#pragma once

#include <optional>

#include "chainfleet/v1/predict.pb.h"
#include "client/cli/report/figure.h"

namespace chainfleet {

// A map of accuracy by corruption and severity. Nothing without corrupted scores, or of float32 targets.
std::optional<Figure> CorruptionMap(const v1::Evaluation& evaluation);

// Scores by severity, mean over corruptions; severity 0 are the rows as they are.
std::optional<Figure> SeverityFigure(const v1::Evaluation& evaluation);

}  // namespace chainfleet
