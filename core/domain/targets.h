// The two sorts of targets that a data set has and a model learns.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/domain/fields.h"

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

// "float32 targets" or "labels".
inline const char* WordsOf(const Targets& targets) {
  return std::holds_alternative<Numbers>(targets) ? "float32 targets" : "labels";
}

// For sizes and messages: 0 for numbers.
inline int64_t NumClasses(const Targets& targets) {
  const auto* classes = std::get_if<Classes>(&targets);
  return classes == nullptr ? 0 : classes->count;
}

// An empty value of V, a variant of one type for numbers and one for classes.
template <typename V>
V EmptyOf(const Targets& targets) {
  if (std::holds_alternative<Numbers>(targets)) return V(std::in_place_index<0>);
  return V(std::in_place_index<1>);
}

// An array of `Owner`, which lists its arrays in kArrays: the name in messages, and whether a row has a value for each
// class or one value.
template <typename Owner, typename Value = double>
struct RowArray {
  const char* name;
  std::vector<Value> Owner::*values;
  bool per_class = false;
};

struct ArrayName {
  const char* name;
  bool per_class;
};

// The arrays of V, as for EmptyOf.
template <typename V>
std::vector<ArrayName> ArraysOf(const Targets& targets) {
  std::vector<ArrayName> names;
  const auto list = [&](const auto& owner) {
    for (const auto& array : owner.kArrays) names.push_back({array.name, array.per_class});
  };
  std::visit(list, EmptyOf<V>(targets));
  return names;
}

void VisitArrays(auto& owner, auto&& visit) {
  for (const auto& array : owner.kArrays) visit(array.name, owner.*array.values);
}

// A message has the fields of both sorts; those of the sort that the variant `sorts` does not hold are empty, and are
// not read.
void VisitSorts(auto& sorts, auto&& visit) {
  ForEachAlternative<std::decay_t<decltype(sorts)>>([&]<typename T>(T other) {
    auto* const held = std::get_if<T>(&sorts);
    T::Fields(held != nullptr ? *held : other, visit);
  });
}

// As messages have them: the number of classes, 0 for numbers.
void VisitTargets(auto& targets, auto&& visit) {
  int64_t num_classes = NumClasses(targets);
  visit("num_classes", num_classes);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(targets)>>) {
    targets = num_classes == 0 ? Targets(Numbers()) : Targets(Classes{num_classes});
  }
}

// As data sets have them: the type of a row's target, too.
enum class TargetType { kLabels = 0, kFloat32 = 1 };
void VisitTypedTargets(auto& targets, auto&& visit) {
  TargetType type = std::holds_alternative<Numbers>(targets) ? TargetType::kFloat32 : TargetType::kLabels;
  int64_t num_classes = NumClasses(targets);
  visit("target_type", type, OrDefault());
  visit("num_classes", num_classes);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(targets)>>) {
    targets = type == TargetType::kFloat32 ? Targets(Numbers()) : Targets(Classes{num_classes});
  }
}

}  // namespace chainfleet
