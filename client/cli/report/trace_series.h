// Traces as the page draws them. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace chainfleet {

struct TracePoint {
  int64_t step = 0;
  double value = 0;
};

// Cuts `points` into runs where two steps lie further apart than neighbours do: the steps between them were not traced,
// and no line may cross them.
std::vector<std::vector<TracePoint>> TracedRuns(const std::vector<TracePoint>& points);

// Keeps about `most` points that look like all: the lowest and the highest of each stretch, in their order. Spikes
// stay.
std::vector<TracePoint> Thinned(const std::vector<TracePoint>& points, size_t most);

// Gives each quantity's smallest and largest value and, for each chain of the point, its steps, its values (null where
// the line breaks; thinned, so statistics of these are not those of the chain), the median of all its values, and the
// counts of a histogram between the two. Leaves out a quantity without finite values.
nlohmann::json TraceSeries(const std::vector<v1::Traces>& traces, int point);

}  // namespace chainfleet
