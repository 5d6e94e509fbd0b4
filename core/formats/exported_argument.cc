#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/formats/exported_archive.h"
#include "core/formats/exported_graph.h"
#include "core/formats/exported_json.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;
using Kind = ExportedValues::Kind;

template <typename T>
using Read = absl::StatusOr<T> (*)(const Json&, ExportedValues*);

absl::StatusOr<ExportedValue> ReadTensor(const Json& tensor, ExportedValues* values) {
  return values->Find(tensor.at("name").get_ref<const std::string&>(), Kind::kTensor);
}

absl::StatusOr<std::optional<ExportedValue>> ReadOneOfTensors(const Json& tensor, ExportedValues* values) {
  return ReadTensor(tensor, values);
}

absl::StatusOr<std::optional<ExportedValue>> ReadOptional(const Json& tensor, ExportedValues* values) {
  if (ExportedKey(tensor) == "as_none") return std::nullopt;
  return ReadTensor(tensor.at("as_tensor"), values);
}

absl::StatusOr<ExportedInt> ReadInteger(const Json& number, ExportedValues*) { return ExportedInteger(number); }
absl::StatusOr<double> ReadNumber(const Json& number, ExportedValues*) { return ExportedNumber(number); }
absl::StatusOr<bool> ReadBool(const Json& value, ExportedValues*) { return value.get<bool>(); }

absl::StatusOr<ExportedInt> ReadSize(const Json& size, ExportedValues* values) {
  if (ExportedKey(size) == "as_int") return ExportedInteger(size.at("as_int"));
  return values->Find(size.at("as_name").get_ref<const std::string&>(), Kind::kSize);
}

template <typename T>
absl::StatusOr<ExportedArgument> ReadList(const Json& list, ExportedValues* values, Read<T> read) {
  std::vector<T> items;
  for (const Json& item : list.get_ref<const Json::array_t&>()) {
    CHAINFLEET_ASSIGN_OR_RETURN(T value, read(item, values));
    items.push_back(std::move(value));
  }
  return ExportedArgument(std::move(items));
}

template <typename T>
absl::StatusOr<ExportedArgument> ArgumentOf(absl::StatusOr<T> read) {
  if (!read.ok()) return std::move(read).status();
  return ExportedArgument(*std::move(read));
}

absl::StatusOr<ExportedArgument> ReadSizeArgument(const Json& size, ExportedValues* values) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ExportedInt read, ReadSize(size, values));
  return std::visit([](const auto& number) { return ExportedArgument(number); }, read);
}

absl::StatusOr<ExportedArgument> ReadOptionalArgument(const Json& tensor, ExportedValues* values) {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto read, ReadOptional(tensor, values));
  return read ? ExportedArgument(*read) : ExportedArgument();
}

absl::StatusOr<ExportedArgument> ReadMemoryFormat(const Json& format) {
  const int64_t number = ExportedInteger(format);
  if (number >= 1 && number <= 4) return ExportedArgument(static_cast<ExportedMemoryFormat>(number - 1));
  return absl::InvalidArgumentError(absl::StrCat("has the unknown memory format ", number));
}

absl::StatusOr<ExportedArgument> ReadLayout(const Json& layout) {
  if (ExportedInteger(layout) == kStridedLayout) return ExportedArgument();
  return absl::InvalidArgumentError("makes a sparse tensor, only strided ones are supported");
}

}  // namespace

absl::StatusOr<ExportedArgument> ReadExportedArgument(const Json& argument, ExportedValues* values) {
  const std::string& kind = ExportedKey(argument);
  const Json& value = argument.begin().value();
  if (kind == "as_none") return ExportedArgument();
  if (kind == "as_tensor") return ArgumentOf(ReadTensor(value, values));
  if (kind == "as_tensors") return ReadList(value, values, &ReadOneOfTensors);
  if (kind == "as_optional_tensor") return ReadOptionalArgument(value, values);
  if (kind == "as_optional_tensors") return ReadList(value, values, &ReadOptional);
  if (kind == "as_int") return ExportedArgument(ExportedInteger(value));
  if (kind == "as_ints") return ReadList(value, values, &ReadInteger);
  if (kind == "as_sym_int") return ReadSizeArgument(value, values);
  if (kind == "as_sym_ints") return ReadList(value, values, &ReadSize);
  if (kind == "as_float") return ExportedArgument(ExportedNumber(value));
  if (kind == "as_floats") return ReadList(value, values, &ReadNumber);
  if (kind == "as_bool") return ExportedArgument(value.get<bool>());
  if (kind == "as_bools") return ReadList(value, values, &ReadBool);
  if (kind == "as_string") return ExportedArgument(value.get<std::string>());
  if (kind == "as_scalar_type") return ArgumentOf(ExportedTypeOf(ExportedInteger(value)));
  if (kind == "as_memory_format") return ReadMemoryFormat(value);
  if (kind == "as_layout") return ReadLayout(value);
  if (kind == "as_device") return ExportedArgument(OwnDevice());
  return absl::InvalidArgumentError(absl::StrCat("is of the kind ", ShownName(kind), ", which is not supported"));
}

}  // namespace chainfleet
