// An evaluation's scores as people read them. Pure functions.
#pragma once

#include <string>

#include "chainfleet/v1/predict.pb.h"
#include "client/cli/views/table.h"

namespace chainfleet {

// "mean single draw theta", "theta_a", "all draws".
std::string NameOf(const v1::Scores& scores);

// Of a job that learns numbers rather than classes.
bool OfNumbers(const v1::Evaluation& evaluation);

// Without rows; `first` heads the column that says what was scored.
Table ScoreTable(const std::string& first, bool numbers);
void AddScores(const std::string& first, const v1::Scores& scores, Table* table);

// A row for each of the evaluation's scores.
Table ScoresOf(const v1::Evaluation& evaluation);

}  // namespace chainfleet
