// A struct lists its fields once; validation, the wire message and the stored record follow from the list.
//
//   struct EmcmcSpec {
//     static constexpr char kName[] = "emcmc";
//     double eta = 4e-4;
//     static void Fields(auto& self, auto&& visit) { visit("eta", self.eta, Above(0)); }
//   };
//
// Fields calls `visit(name, value, rules...)` for each field, with the same fields in the same order each time. A value
// is a number, bool, std::string, enum, absl::Time, absl::Duration or another struct with Fields; an optional or a
// vector of these; or a map of doubles by name. An enum whose values have names lists them in EnumNames(E()).
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace chainfleet {

// Rules for a value. For numbers: the valid range; infinite and NaN values are never valid.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool open_least = false, open_most = false;
  bool or_default = false;  // a message without the value means the default
  // For a struct with any(), a list, a number, a bool or an enum: stored only if any() holds, not empty, not zero, true,
  // or not the default.
  bool if_any = false;
  bool required = false;  // a stored record without the value is damaged
};
constexpr Bounds Above(double value) { return {.least = value, .open_least = true}; }
constexpr Bounds AtLeast(double value) { return {.least = value}; }
constexpr Bounds Between(double least, double most) { return {.least = least, .most = most}; }
// Valid: least <= value < most.
constexpr Bounds Below(double least, double most) { return {.least = least, .most = most, .open_most = true}; }
// Valid: least < value < most.
constexpr Bounds Inside(double least, double most) { return {least, most, true, true}; }
constexpr Bounds OrDefault() { return {.or_default = true}; }
constexpr Bounds IfAny() { return {.if_any = true}; }
constexpr Bounds Required() { return {.required = true}; }

// A struct that lists its fields.
template <typename T>
concept HasFields = requires(T& value) {
  T::Fields(value, [](auto&&...) {});
};

// An enum whose values have names.
template <typename E>
concept HasEnumNames = requires {
  EnumNames(E());
};

// Returns "must be finite and above 0, is -1", or "" if `value` is within the bounds.
std::string OutOfBounds(double value, const Bounds& bounds);

// Returns the name of an enum's value; EnumNames(E()) lists the names from value 0 on.
template <typename E>
std::string EnumName(E value) {
  return *(EnumNames(E()).begin() + static_cast<int>(value));
}

// Returns the value called `name`, or nullopt.
template <typename E>
std::optional<E> EnumFromName(const std::string& name) {
  int index = 0;
  for (const char* known : EnumNames(E())) {
    if (name == known) return static_cast<E>(index);
    ++index;
  }
  return std::nullopt;
}

// Returns all names, as "friction, baoa".
template <typename E>
std::string AllEnumNames() {
  std::string all;
  for (const char* name : EnumNames(E())) absl::StrAppend(&all, all.empty() ? "" : ", ", name);
  return all;
}

// Calls `visit` with an instance of each alternative, in order.
template <typename Variant, typename Visit, size_t... I>
void ForEachAlternative(Visit&& visit, std::index_sequence<I...>) {
  (visit(std::variant_alternative_t<I, Variant>()), ...);
}
template <typename Variant, typename Visit>
void ForEachAlternative(Visit&& visit) {
  ForEachAlternative<Variant>(visit, std::make_index_sequence<std::variant_size_v<Variant>>());
}

// Returns the names of a variant's alternatives, as "sgld, emcmc".
template <typename Variant>
std::string AlternativeNames() {
  std::string all;
  ForEachAlternative<Variant>([&](const auto& kind) { absl::StrAppend(&all, all.empty() ? "" : ", ", kind.kName); });
  return all;
}

// Collects the values out of bounds; `path` is the path of the struct.
class BoundsCheck {
 public:
  BoundsCheck(std::string path, std::vector<FieldViolation>* violations)
      : path_(std::move(path)), violations_(violations) {}

  template <typename T>
  void operator()(const char* name, const T& value, const Bounds& bounds = {}) const {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
      Report(name, OutOfBounds(static_cast<double>(value), bounds));
    } else if constexpr (std::is_same_v<T, std::optional<double>> || std::is_same_v<T, std::optional<int64_t>>) {
      if (value) (*this)(name, *value, bounds);
    } else if constexpr (std::is_same_v<T, std::vector<double>> || std::is_same_v<T, std::vector<int64_t>>) {
      for (size_t i = 0; i < value.size(); ++i) {
        (*this)(absl::StrCat(name, "[", i, "]").c_str(), value[i], bounds);
      }
    } else if constexpr (std::is_same_v<T, std::map<std::string, double>>) {
      for (const auto& [key, number] : value) (*this)(absl::StrCat(name, ".", key).c_str(), number, bounds);
    }
  }

 private:
  void Report(const std::string& name, const std::string& message) const {
    if (!message.empty()) violations_->push_back({path_.empty() ? name : path_ + "." + name, message});
  }
  std::string path_;
  std::vector<FieldViolation>* violations_;
};

// Returns the violations of one struct's bounds, with paths below `path`.
template <typename Spec>
void CheckBounds(const Spec& spec, const std::string& path, std::vector<FieldViolation>* violations) {
  Spec::Fields(spec, BoundsCheck(path, violations));
}

}  // namespace chainfleet
