// Renders an evaluation's results for people. Pure functions.
#pragma once

#include <string>

#include "chainfleet/v1/predict.pb.h"
#include "client/cli/views/table.h"

namespace chainfleet {

// "mean single draw theta", "theta_a", "all draws".
std::string NameOf(const v1::Scores& scores);

// True if the job learns float32 targets instead of classes.
bool OfNumbers(const v1::Evaluation& evaluation);

// A table without rows; `first` heads the column that names what was scored.
Table ScoreTable(const std::string& first, bool numbers);
void AddScores(const std::string& first, const v1::Scores& scores, Table* table);

// One row for each of the evaluation's scores.
Table ScoresOf(const v1::Evaluation& evaluation);

// One row for each level of its conformal sets or intervals; without a calibration data set there are none.
Table ConformalOf(const v1::Evaluation& evaluation);

// One row for each chain; without a stacking data set there are none.
Table WeightsOf(const v1::Evaluation& evaluation);

}  // namespace chainfleet
