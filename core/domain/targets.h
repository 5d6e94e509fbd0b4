// The two sorts of targets that a data set has and a model learns.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/domain/dataset.h"

namespace chainfleet {

// Float32.
struct Numbers {
  bool operator==(const Numbers&) const = default;
};

// Labels 0 to count - 1.
struct Classes {
  int64_t count = 0;
  bool operator==(const Classes&) const = default;
};

using Targets = std::variant<Numbers, Classes>;

// The targets of rows, [n]: numbers, or labels.
using TargetValues = std::variant<std::vector<float>, std::vector<int32_t>>;

inline Targets TargetsOf(const Dataset& dataset) {
  if (dataset.target_type == TargetType::kFloat32) return Numbers();
  return Classes{dataset.num_classes};
}

// For sizes and messages: 0 for numbers.
inline int64_t NumClasses(const Targets& targets) {
  const auto* classes = std::get_if<Classes>(&targets);
  return classes == nullptr ? 0 : classes->count;
}

// `count` zeros.
inline TargetValues MakeTargetValues(const Targets& targets, size_t count) {
  if (std::holds_alternative<Numbers>(targets)) return std::vector<float>(count);
  return std::vector<int32_t>(count);
}

// As messages have them: the number of classes, 0 for numbers.
void VisitTargets(auto& targets, auto&& visit) {
  int64_t num_classes = NumClasses(targets);
  visit("num_classes", num_classes);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(targets)>>) {
    targets = num_classes == 0 ? Targets(Numbers()) : Targets(Classes{num_classes});
  }
}

}  // namespace chainfleet
