// Renders the ranks of a job of kind sbc for people. Pure functions.
#pragma once

#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/views/table.h"

namespace chainfleet {

// True if the job has ranks in place of R-hat.
bool HasRanks(const v1::Job& job);

// One row for each quantity at each point: chains, their mean ESS, and a column for each part of [0, 1] with the number
// of chains whose true value has its rank there. '*' marks p-values below 0.01 / quantities of the point; '-' means
// that the server made no test, because chains or draws are too few.
Table RankTable(const v1::Job& job);

// How to read that table; empty without ranks.
std::string ExplainRanks(const v1::Job& job);

}  // namespace chainfleet
