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

// Cut where steps lie further apart than neighbours do: those between them were not traced, and no line may cross them.
std::vector<std::vector<TracePoint>> TracedRuns(const std::vector<TracePoint>& points);

// At most about `most` points that look alike: of each stretch of points the lowest and the highest, in their order.
// Spikes stay.
std::vector<TracePoint> Thinned(const std::vector<TracePoint>& points, size_t most);

// Of each quantity: its ends, and for each chain of the point steps, values (null where a line is broken) and the
// counts of a histogram between the ends. A quantity without finite values is left out.
nlohmann::json TraceSeries(const std::vector<v1::Traces>& traces, int point);

}  // namespace chainfleet
