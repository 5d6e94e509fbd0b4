#include "core/formats/exported_archive.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/base/saturating.h"
#include "core/formats/exported_json.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;

constexpr char kKind[] = ".pt2";
constexpr char kModel[] = "models/model.json";
constexpr char kOldModel[] = "serialized_exported_program.json";  // PyTorch before 2.9 wrote it
constexpr int64_t kMaxModelJsonBytes = 32 * limits::kMiB;
constexpr int64_t kMaxListBytes = 8 * limits::kMiB;  // some 20 000 tensors
constexpr size_t kMaxMembers = 65536;
constexpr int64_t kMemoryOfMember = 512;  // libzip's entry and two copies of the name
constexpr size_t kMaxTensorAxes = 8;
constexpr int64_t kMaxNumbers = int64_t{1} << 40;

struct TypeEntry {
  ExportedType type;
  int64_t number;  // in the schema
  int64_t bytes;
  const char* name;
};
constexpr TypeEntry kTypes[] = {
    {ExportedType::kBool, 12, 1, "bool"},    {ExportedType::kUint8, 1, 1, "uint8"},
    {ExportedType::kInt8, 2, 1, "int8"},     {ExportedType::kInt16, 3, 2, "int16"},
    {ExportedType::kInt32, 4, 4, "int32"},   {ExportedType::kInt64, 5, 8, "int64"},
    {ExportedType::kHalf, 6, 2, "float16"},  {ExportedType::kBfloat16, 13, 2, "bfloat16"},
    {ExportedType::kFloat, 7, 4, "float32"}, {ExportedType::kDouble, 8, 8, "float64"},
};
static_assert(kTypes[static_cast<int>(ExportedType::kDouble)].type == ExportedType::kDouble);

const TypeEntry& EntryOf(ExportedType type) { return kTypes[static_cast<int>(type)]; }

// True if the tensor has all numbers of its storage, in C order.
bool IsPlain(const Json& meta, const std::vector<int64_t>& shape) {
  int64_t stride = 1;
  bool plain = ExportedInteger(meta.at("storage_offset").at("as_int")) == 0;
  for (size_t axis = shape.size(); axis-- > 0;) {
    plain &= shape[axis] <= 1 || ExportedInteger(meta.at("strides").at(axis).at("as_int")) == stride;
    stride *= shape[axis];
  }
  return plain || stride == 0;  // an empty tensor
}

}  // namespace

int64_t SizeOf(ExportedType type) { return EntryOf(type).bytes; }
const char* NameOf(ExportedType type) { return EntryOf(type).name; }

absl::StatusOr<ExportedType> ExportedTypeOf(int64_t number_in_the_schema) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.number == number_in_the_schema) return entry.type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("type ", number_in_the_schema, " of the schema is neither bool, integer nor float"));
}

absl::Status ReadTensorMeta(const Json& meta, ExportedType* type, std::vector<int64_t>* shape) {
  CHAINFLEET_ASSIGN_OR_RETURN(*type, ExportedTypeOf(ExportedInteger(meta.at("dtype"))));
  const auto& sizes = meta.at("sizes").get_ref<const Json::array_t&>();
  if (sizes.size() > kMaxTensorAxes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", sizes.size(), " axes, at most ", kMaxTensorAxes, " are read"));
  }
  int64_t numbers = 1;
  for (const Json& size : sizes) {
    const bool fixed = ExportedKey(size) != "as_expr";
    shape->push_back(fixed ? ExportedInteger(size.at("as_int")) : -1);
    if (fixed && shape->back() < 0) return absl::InvalidArgumentError("has an axis of negative size");
    numbers = SaturatingMultiply(numbers, std::max<int64_t>(shape->back(), 1));  // 0 must not hide an overflow
  }
  if (numbers > kMaxNumbers) return absl::InvalidArgumentError("has more numbers than any memory");
  return absl::OkStatus();
}

absl::StatusOr<ExportedArchive> ExportedArchive::Open(const ByteSource& source, const AdmitBytes& admit) {
  CHAINFLEET_ASSIGN_OR_RETURN(ZipReader zip, ZipReader::Open(source, kKind));
  if (zip.names().size() > kMaxMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the archive has ", zip.names().size(), " members, at most ", kMaxMembers, " are read"));
  }
  CHAINFLEET_RETURN_IF_ERROR(admit(std::ssize(zip.names()) * kMemoryOfMember));
  const auto is_model = [](const std::string& name) { return absl::EndsWith(name, absl::StrCat("/", kModel)); };
  const auto found = std::ranges::find_if(zip.names(), is_model);
  if (found == zip.names().end()) {
    return absl::InvalidArgumentError(absl::StrCat("the archive has no member ", kModel,
                                                   ": write it with torch.export.save of PyTorch 2.9 or later"));
  }
  ExportedArchive archive(std::move(zip), found->substr(0, found->size() - std::string_view(kModel).size()), admit);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string order, archive.ReadSmall("byteorder", limits::kKiB));
  if (order != "little") {
    return absl::InvalidArgumentError(absl::StrCat("byteorder is ", ShownName(order), ", only little is read"));
  }
  return archive;
}

absl::StatusOr<int64_t> ExportedArchive::SizeBytes(const std::string& name) const {
  absl::StatusOr<int64_t> size = zip_.SizeBytes(folder_ + name);
  if (absl::IsNotFound(size.status())) return absl::InvalidArgumentError(size.status().message());
  return size;
}

absl::StatusOr<std::string> ExportedArchive::ReadSmall(const std::string& name, int64_t max_bytes) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t size, SizeBytes(name));
  if (size <= max_bytes) return zip_.Read(folder_ + name, max_bytes, admit_);
  return absl::InvalidArgumentError(absl::StrCat("has ", size, " bytes, at most ", max_bytes, " are read"));
}

absl::StatusOr<Json> ExportedArchive::ReadJson(const std::string& name) const {
  const int64_t max_bytes = name == kModel ? kMaxModelJsonBytes : kMaxListBytes;
  const absl::StatusOr<std::string> text = ReadSmall(name, max_bytes);
  if (!text.ok()) return Annotate(text.status(), name);
  absl::StatusOr<Json> json = ParseExportedJson(*text, max_bytes, admit_);
  if (!json.ok()) return Annotate(json.status(), name);
  return json;
}

absl::Status ExportedArchive::Describe(const Json& entry, const std::string& folder, ExportedTensor* tensor) const {
  if (entry.at("use_pickle").get<bool>()) {
    return absl::InvalidArgumentError(
        "is pickled, which may hold code: export the network with plain tensors, not subclasses of torch.Tensor");
  }
  const Json& meta = entry.at("tensor_meta");
  CHAINFLEET_RETURN_IF_ERROR(ReadTensorMeta(meta, &tensor->type, &tensor->shape));
  if (std::ranges::count(tensor->shape, -1) > 0) return absl::InvalidArgumentError("has a size that is not fixed");
  int64_t bytes = SizeOf(tensor->type);
  for (const int64_t size : tensor->shape) bytes *= size;  // below 2^43, see ReadTensorMeta
  const auto& path = entry.at("path_name").get_ref<const std::string&>();
  tensor->member = absl::StrCat(folder_, folder, path);
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t stored, SizeBytes(folder + path));
  if (ExportedInteger(meta.at("layout")) != kStridedLayout || !IsPlain(meta, tensor->shape) || stored > bytes) {
    return absl::InvalidArgumentError(
        "is a part or a view of other memory: clone() it before the export, or if channels_last made it a view, use "
        "network.to(memory_format=torch.contiguous_format)");
  }
  if (stored == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("needs ", bytes, " bytes, but member ", ShownName(path), " has ", stored));
}

bool IsExportedProgram(const ByteSource& source) {
  const absl::StatusOr<ZipReader> zip = ZipReader::Open(source, kKind);
  if (!zip.ok()) return false;
  for (const std::string& name : zip->names()) {
    if (name == kOldModel || name.ends_with(absl::StrCat("/", kOldModel))) return true;
    if (!name.ends_with("/archive_format")) continue;
    const absl::StatusOr<std::string> format = zip->Read(name, limits::kKiB);
    if (format.ok() && *format == "pt2") return true;
  }
  return false;
}

absl::Status ReadExportedTensors(const ByteSource& source, const ExportedProgram& program,
                                 const std::function<std::span<char>(const ExportedTensor&)>& room) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ZipReader zip, ZipReader::Open(source, kKind));
  for (const ExportedTensor& tensor : program.tensors) {
    const std::span<char> to = room(tensor);
    CHAINFLEET_RETURN_IF_ERROR(zip.ReadTo(tensor.member, to.data(), to.size()));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
