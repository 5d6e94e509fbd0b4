#include "core/store/draw_codec/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace chainfleet {
namespace {

using Json = nlohmann::json;                 // finds a key in logarithmic time
using OrderedJson = nlohmann::ordered_json;  // for headers that are written: searches all keys for each one

constexpr struct {
  TensorType type;
  const char* name;
  int64_t bytes;
} kTypes[] = {{TensorType::kBool, "BOOL", 1},   {TensorType::kUint8, "U8", 1},    {TensorType::kInt32, "I32", 4},
              {TensorType::kInt64, "I64", 8},   {TensorType::kFloat16, "F16", 2}, {TensorType::kBfloat16, "BF16", 2},
              {TensorType::kFloat32, "F32", 4}, {TensorType::kFloat64, "F64", 8}};

const auto& RowOf(TensorType type) { return kTypes[static_cast<int>(type)]; }

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError("not a valid safetensors file: " + what);
}

// Finds keys that occur twice in an object. It reads the text itself: nlohmann's parser with a callback looks through
// all values of an object when an inner one ends, which takes quadratic time.
class DuplicateFinder final : public nlohmann::json_sax<Json> {
 public:
  bool found() const { return found_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    found_ = !keys_.back().insert(name).second;
    return !found_;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::vector<std::set<std::string>> keys_;  // those of each open object
  bool found_ = false;
};

// nlohmann silently keeps the last of duplicate keys; a strict reader must reject them.
absl::StatusOr<Json> ParseJson(const char* begin, const char* end) {
  // nlohmann also accepts a byte order mark and leading blanks, and stops at a NUL.
  if (begin == end || *begin != '{' || std::find(begin, end, '\0') != end)
    return Bad("the header is not a JSON object in UTF-8");
  DuplicateFinder duplicates;
  const bool is_json = Json::sax_parse(begin, end, &duplicates);
  if (duplicates.found()) return Bad("a key of the header occurs twice");
  Json header = is_json ? Json::parse(begin, end, nullptr, /*allow_exceptions=*/false) : Json();
  if (!header.is_object()) return Bad("the header is not a JSON object in UTF-8");
  return header;
}

absl::StatusOr<TensorType> ParseType(const Json& entry) {
  const auto dtype = entry.find("dtype");
  if (dtype != entry.end() && dtype->is_string()) {
    for (const auto& row : kTypes) {
      if (*dtype == row.name) return row.type;
    }
  }
  return Bad("unknown or missing dtype");
}

// Reads the non-negative integers of array `key`.
absl::StatusOr<std::vector<int64_t>> ParseSizes(const Json& entry, const char* key) {
  const auto array = entry.find(key);
  if (array == entry.end() || !array->is_array()) return Bad(absl::StrCat(key, " is missing"));
  std::vector<int64_t> sizes;
  for (const Json& size : *array) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > INT64_MAX)
      return Bad(absl::StrCat(key, " has a value that is not a size"));
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

struct Entry {
  TensorView tensor;
  int64_t begin = 0, end = 0;
};

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& json) {
  if (!json.is_object()) return Bad("an entry is no object");
  Entry entry;
  entry.tensor.name = name;
  CHAINFLEET_ASSIGN_OR_RETURN(entry.tensor.type, ParseType(json));
  CHAINFLEET_ASSIGN_OR_RETURN(entry.tensor.shape, ParseSizes(json, "shape"));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, ParseSizes(json, "data_offsets"));
  if (json.size() != 3 || offsets.size() != 2 || offsets[0] > offsets[1])
    return Bad(absl::StrCat("entry ", name, " is malformed"));
  int64_t bytes = ItemBytes(entry.tensor.type);
  for (const int64_t size : entry.tensor.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return Bad(absl::StrCat("the shape of ", name, " overflows"));
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  entry.tensor.size_bytes = bytes;
  if (entry.end - entry.begin != bytes) return Bad(absl::StrCat("shape and offsets of ", name, " disagree"));
  return entry;
}

absl::Status ParseMetadata(const Json& json, std::map<std::string, std::string>* metadata) {
  if (!json.is_object()) return Bad("__metadata__ is no object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Bad("__metadata__ has a value that is not a string");
    metadata->emplace(key, value.get<std::string>());
  }
  return absl::OkStatus();
}

// The tensors must cover [0, size) without holes or overlaps.
absl::Status OrderTensors(std::vector<Entry> entries, int64_t size, std::vector<TensorView>* tensors) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t end = 0;
  for (Entry& entry : entries) {
    if (entry.begin != end) return Bad(absl::StrCat("there is a hole or an overlap before ", entry.tensor.name));
    end = entry.end;
    tensors->push_back(std::move(entry.tensor));
  }
  return end == size ? absl::OkStatus() : Bad(absl::StrCat("the tensors end at ", end, ", the data at ", size));
}

}  // namespace

int64_t ItemBytes(TensorType type) { return RowOf(type).bytes; }

const TensorView* Safetensors::Find(const std::string& name) const {
  const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const TensorView& t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

absl::StatusOr<Safetensors> ParseSafetensorsHeader(std::string_view begin, int64_t size_bytes,
                                                   uint64_t max_header_bytes) {
  uint64_t header_size = 0;
  if (begin.size() < sizeof header_size) return Bad("it is shorter than 8 bytes");
  std::memcpy(&header_size, begin.data(), sizeof header_size);
  if (header_size > max_header_bytes || header_size > begin.size() - sizeof header_size)
    return Bad("the header is cut or too long");
  const std::string_view text = begin.substr(sizeof header_size, header_size);
  CHAINFLEET_ASSIGN_OR_RETURN(const Json header, ParseJson(text.data(), text.data() + text.size()));
  Safetensors file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      CHAINFLEET_RETURN_IF_ERROR(ParseMetadata(value, &file.metadata));
      continue;
    }
    CHAINFLEET_ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, value));
    entries.push_back(std::move(entry));
  }
  const auto data_begin = static_cast<int64_t>(sizeof header_size + header_size);
  CHAINFLEET_RETURN_IF_ERROR(OrderTensors(std::move(entries), size_bytes - data_begin, &file.tensors));
  return file;
}

absl::StatusOr<Safetensors> ParseSafetensors(const std::string& bytes, uint64_t max_header_bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  CHAINFLEET_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensorsHeader(bytes, size, max_header_bytes));
  const char* end = bytes.data() + bytes.size();  // without holes the tensors end where the file does
  for (auto tensor = file.tensors.rbegin(); tensor != file.tensors.rend(); ++tensor) {
    tensor->data = end -= tensor->size_bytes;
  }
  return file;
}

std::string SafetensorsHeader(const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t end = 0;
  for (const TensorView& t : tensors) {
    CHAINFLEET_CHECK(!header.contains(t.name)) << "tensor " << t.name << " is written twice";
    header[t.name] = {{"dtype", RowOf(t.type).name}, {"shape", t.shape}, {"data_offsets", {end, end + t.size_bytes}}};
    end += t.size_bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t header_size = text.size();
  return std::string(reinterpret_cast<const char*>(&header_size), sizeof header_size) + text;
}

std::string WriteSafetensors(const std::vector<TensorView>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  std::string bytes = SafetensorsHeader(tensors, metadata);
  int64_t size = static_cast<int64_t>(bytes.size());
  for (const TensorView& t : tensors) size += t.size_bytes;
  bytes.reserve(static_cast<size_t>(size));
  for (const TensorView& t : tensors) bytes.append(t.data, static_cast<size_t>(t.size_bytes));
  return bytes;
}

}  // namespace chainfleet
