// The most and the least certain rows of the data set, as pictures. Pure functions.
#pragma once

#include <optional>

#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "client/cli/report/figure.h"

namespace chainfleet {

// True if rows [channels, height, width] of this shape can be shown: 1 or 3 channels of 2 to 1,024 pixels a side.
bool IsPicture(const google::protobuf::RepeatedField<int64_t>& shape);

// `rows` are those that evaluation.examples names, in that order; without them, or if they are no pictures, each is
// told by its number. Nothing without examples.
std::optional<Figure> ExamplesFigure(const v1::Evaluation& evaluation, const v1::DatasetRowValues& rows);

}  // namespace chainfleet
