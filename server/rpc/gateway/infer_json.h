// The JSON body of an inference request, read within bounds.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace chainfleet {

struct InferJson {
  nlohmann::json body;                    // an object; arrays `data` of its inputs are empty
  std::vector<std::vector<double>> data;  // their elements, by the input's place; missing at the end where none has any
  std::set<size_t> with_bools;            // places of inputs whose elements have true or false
};

// INVALID_ARGUMENT: no JSON object, more values or levels than limits::kJsonValues and kJsonDepth allow, or an element
// of `data` that is no number.
absl::StatusOr<InferJson> ParseInferJson(std::string_view text);

}  // namespace chainfleet
