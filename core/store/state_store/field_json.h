// Settings structs (core/domain/fields.h) <-> JSON objects. Fields that a record lacks keep their default, so records
// of older builds stay readable.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/domain/fields.h"

namespace chainfleet {

class JsonFieldWriter {
 public:
  explicit JsonFieldWriter(nlohmann::json* json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, const T& value, const Bounds& = {}) const {
    if constexpr (std::is_enum_v<T>) {
      (*json_)[name] = EnumName(value);
    } else {
      (*json_)[name] = value;
    }
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value, const Bounds& = {}) const {
    if (value) (*json_)[name] = *value;
  }

 private:
  nlohmann::json* json_;
};

// Throws nlohmann::json::exception for values of another type.
class JsonFieldReader {
 public:
  explicit JsonFieldReader(const nlohmann::json& json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, T& value, const Bounds& = {}) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return;
    if constexpr (std::is_enum_v<T>) {
      if (const auto known = EnumFromName<T>(found->template get<std::string>())) value = *known;
    } else {
      value = found->template get<T>();
    }
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value, const Bounds& = {}) const {
    if (const auto found = json_.find(name); found != json_.end()) value = found->template get<T>();
  }

 private:
  const nlohmann::json& json_;
};

// {"emcmc": {"eta": 0.0004}}.
template <typename Variant>
nlohmann::json ChoiceToJson(const Variant& kind) {
  return std::visit(
      [](const auto& spec) {
        nlohmann::json fields = nlohmann::json::object();
        spec.Fields(spec, JsonFieldWriter(&fields));
        return nlohmann::json{{spec.kName, std::move(fields)}};
      },
      kind);
}

// Throws nlohmann::json::out_of_range if no alternative is there.
template <typename Variant>
void ChoiceFromJson(const nlohmann::json& json, Variant* kind) {
  bool found = false;
  ForEachAlternative<Variant>([&](auto spec) {
    const auto fields = json.find(spec.kName);
    if (fields == json.end()) return;
    spec.Fields(spec, JsonFieldReader(*fields));
    *kind = std::move(spec);
    found = true;
  });
  if (!found) json.at(AlternativeNames<Variant>());
}

}  // namespace chainfleet
