// What chains did: a quantity over their steps, chain by chain, and the histogram of each beside it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "client/cli/report/figure.h"
#include "client/cli/report/plot.h"

namespace chainfleet {

// Of the chains of one point; `diagnostic`, of the same quantity, may be null. Nothing without values.
std::optional<Figure> TraceFigure(const v1::Traces& traces, int point, const v1::Job::Diagnostic* diagnostic);

// At most about `most` points that look alike: of each run of points the lowest and the highest, in their order. Spikes
// stay.
std::vector<PlotPoint> Thinned(const std::vector<PlotPoint>& points, size_t most);

}  // namespace chainfleet
