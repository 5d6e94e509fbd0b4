// The parts of the report that are words and numbers: what is at its top, the facts of the job, and what is missing.
// Pure functions to markup.
#pragma once

#include <string>

#include "client/cli/report/page.h"

namespace chainfleet {

// The job as if one point of its sweep were all of it: that point's posterior, chains and diagnostics.
v1::Job JobOfPoint(const v1::Job& job, int32_t point);

// Name, state, what was averaged over what.
std::string HeadingHtml(const ReportContents& contents);

// The few numbers that count, each beside what it is held against.
std::string TilesHtml(const ReportContents& contents);

// Empty without warnings.
std::string WarningsHtml(const v1::Job& job);

// Posterior, progress, data set, and the job file to run it again.
std::string FactsHtml(const v1::Job& job);

// A line for each part that the contents cannot fill, with the command that does. Empty if all is there.
std::string AbsentHtml(const ReportContents& contents);

}  // namespace chainfleet
