// Converts structs with Fields (core/domain/fields.h) to and from JSON objects. Fields that a record lacks keep their
// default, so records of older builds stay readable. A time NAME is NAME_ns, nanoseconds since 1970.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/domain/fields.h"
#include "core/domain/job_spec.h"

namespace chainfleet {

// Records hold the value's number, not its word.
template <typename E>
inline constexpr bool kStoredByNumber = !HasEnumNames<E>;
template <>
inline constexpr bool kStoredByNumber<DrawKind> = true;
template <>
inline constexpr bool kStoredByNumber<Minibatches> = true;

template <typename T>
nlohmann::json ToJson(const T& value);
template <typename T>
void FromJson(const nlohmann::json& json, T* value);

// Writes the visited fields into `json`.
class JsonFieldWriter {
 public:
  explicit JsonFieldWriter(nlohmann::json* json) : json_(json) {}
  template <typename T>
  void operator()(const char* name, const T& value, const Bounds& rules = {}) const {
    if constexpr (std::is_same_v<T, absl::Time>) {
      (*json_)[std::string(name) + "_ns"] = absl::ToUnixNanos(value);
    } else if constexpr (requires { value.any(); }) {
      if (!rules.if_any || value.any()) (*json_)[name] = ToJson(value);
    } else if constexpr (requires { value.empty(); }) {
      if (!rules.if_any || !value.empty()) (*json_)[name] = ToJson(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (!rules.if_any || value != T()) (*json_)[name] = ToJson(value);
    } else {
      (*json_)[name] = ToJson(value);
    }
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value, const Bounds& = {}) const {
    if (value) (*json_)[name] = ToJson(*value);
  }

 private:
  nlohmann::json* json_;
};

// Reads the visited fields. Throws nlohmann::json::exception for values of another type, also if `json` is no object,
// and for a required field that is absent.
class JsonFieldReader {
 public:
  explicit JsonFieldReader(const nlohmann::json& json) : json_(json.get_ref<const nlohmann::json::object_t&>()) {}
  template <typename T>
  void operator()(const char* name, T& value, const Bounds& rules = {}) const {
    if constexpr (std::is_same_v<T, absl::Time>) {
      if (const auto* found = Find(std::string(name) + "_ns", rules))
        value = absl::FromUnixNanos(found->get<int64_t>());
    } else {
      if (const auto* found = Find(name, rules)) FromJson(*found, &value);
    }
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value, const Bounds& rules = {}) const {
    if (const auto* found = Find(name, rules)) FromJson(*found, &value.emplace());
  }

 private:
  const nlohmann::json* Find(const std::string& name, const Bounds& rules) const {
    if (const auto found = json_.find(name); found != json_.end()) return &found->second;
    if (rules.required) {
      throw nlohmann::json::out_of_range::create(403, "key '" + name + "' not found", nullptr);
    }
    return nullptr;
  }
  const nlohmann::json::object_t& json_;
};

template <typename T>
inline constexpr bool kIsListOfStructs = false;
template <typename T>
inline constexpr bool kIsListOfStructs<std::vector<T>> = HasFields<T> || std::is_enum_v<T>;

template <typename T>
nlohmann::json ToJson(const T& value) {
  if constexpr (HasFields<T>) {
    nlohmann::json fields = nlohmann::json::object();
    T::Fields(value, JsonFieldWriter(&fields));
    return fields;
  } else if constexpr (kIsListOfStructs<T>) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& element : value) list.push_back(ToJson(element));
    return list;
  } else if constexpr (std::is_enum_v<T>) {
    if constexpr (kStoredByNumber<T>) return static_cast<int>(value);
    if constexpr (!kStoredByNumber<T>) return EnumName(value);
  } else {
    return value;
  }
}

template <typename T>
void FromJson(const nlohmann::json& json, T* value) {
  if constexpr (HasFields<T>) {
    T::Fields(*value, JsonFieldReader(json));
  } else if constexpr (kIsListOfStructs<T>) {
    for (const nlohmann::json& element : json) FromJson(element, &value->emplace_back());
  } else if constexpr (std::is_enum_v<T>) {
    if constexpr (kStoredByNumber<T>) {
      *value = static_cast<T>(json.get<int>());
    } else if (const auto known = EnumFromName<T>(json.get<std::string>())) {
      *value = *known;
    }
  } else {
    *value = json.get<T>();
  }
}

// For example {"emcmc": {"eta": 0.0004}}.
template <typename Variant>
nlohmann::json ChoiceToJson(const Variant& kind) {
  return std::visit([](const auto& spec) { return nlohmann::json{{spec.kName, ToJson(spec)}}; }, kind);
}

// Throws nlohmann::json::out_of_range if the object names no alternative.
template <typename Variant>
void ChoiceFromJson(const nlohmann::json& json, Variant* kind) {
  bool found = false;
  ForEachAlternative<Variant>([&](auto spec) {
    const auto fields = json.find(spec.kName);
    if (fields == json.end()) return;
    FromJson(*fields, &spec);
    *kind = std::move(spec);
    found = true;
  });
  if (!found) json.at(AlternativeNames<Variant>());
}

}  // namespace chainfleet
