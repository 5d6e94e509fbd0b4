#include "core/formats/decoded_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/content_limits.h"
#include "core/base/limits.h"
#include "core/formats/cifar.h"
#include "core/formats/csv.h"
#include "core/formats/gzip.h"
#include "core/formats/idx.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"
#include "core/formats/zarr_reader.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

constexpr int64_t kMaxLabel = 65535;

struct NamedArray {
  std::string file;
  Array array;
  std::function<std::string(int64_t row)> place = {};  // place of a row in the file; "row 7" by default

  std::string At(int64_t row) const { return place ? place(row) : absl::StrCat("row ", row); }
};

template <typename T>
T At(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double NumberAt(const Array& array, int64_t index) {
  switch (array.type) {
    case ArrayType::kUint8:
      return At<uint8_t>(array.bytes, index);
    case ArrayType::kInt32:
      return At<int32_t>(array.bytes, index);
    case ArrayType::kInt64:
      return static_cast<double>(At<int64_t>(array.bytes, index));
    case ArrayType::kFloat32:
      return At<float>(array.bytes, index);
    case ArrayType::kFloat64:
      return At<double>(array.bytes, index);
  }
  return 0;
}

int64_t RowSize(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

absl::Status SetLabels(const NamedArray& labels, DecodedDataset* data) {
  auto& values = data->targets.emplace<std::vector<int32_t>>();
  for (int64_t i = 0; i < data->num_rows; ++i) {
    const double label = NumberAt(labels.array, i);
    if (!(label >= 0 && label <= kMaxLabel) || label != std::floor(label)) {
      return absl::InvalidArgumentError(absl::StrCat(labels.file, ": label ", label, " of ", labels.At(i),
                                                     " is not a whole number from 0 to ", kMaxLabel,
                                                     "; numbers to predict are put with --target-type float32"));
    }
    values.push_back(static_cast<int32_t>(label));
    data->num_classes = std::max(data->num_classes, static_cast<int64_t>(label) + 1);
  }
  return absl::OkStatus();
}

absl::Status SetNumbers(const NamedArray& targets, DecodedDataset* data) {
  auto& values = data->targets.emplace<std::vector<float>>();
  for (int64_t i = 0; i < data->num_rows; ++i) {
    const double target = NumberAt(targets.array, i);
    values.push_back(static_cast<float>(target));
    if (!std::isfinite(values.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat(targets.file, ": target ", target, " of ", targets.At(i), " is no finite float32"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetInputs(NamedArray inputs, const AdmitBytes& admit, DecodedDataset* data) {
  if (inputs.array.type == ArrayType::kUint8) {
    data->is_uint8 = true;
    data->inputs = std::move(inputs.array.bytes);
    return absl::OkStatus();
  }
  const int64_t row_size = RowSize(inputs.array.shape), items = data->num_rows * row_size;
  const bool converts = inputs.array.type != ArrayType::kFloat32;
  if (converts) {
    CHAINFLEET_RETURN_IF_ERROR(admit(items * static_cast<int64_t>(sizeof(float))));
    data->inputs.resize(static_cast<size_t>(items) * sizeof(float));
  }
  for (int64_t i = 0; i < items; ++i) {
    const float value = static_cast<float>(NumberAt(inputs.array, i));
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(inputs.file, ": ", inputs.At(i / row_size), " holds ", value, ": inputs must be finite"));
    }
    if (converts) std::memcpy(data->inputs.data() + i * static_cast<int64_t>(sizeof(float)), &value, sizeof(float));
  }
  if (!converts) data->inputs = std::move(inputs.array.bytes);
  return absl::OkStatus();
}

// Later code divides by sizes and multiplies them. A size of 0 would make the products meaningless.
absl::Status CheckSizes(const NamedArray& named) {
  const std::vector<int64_t>& shape = named.array.shape;
  if (std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 1; })) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(named.file, " is [", absl::StrJoin(shape, ", "), "]: the size of each axis must be at least 1"));
}

// Every job carries the description of its data set, which has two numbers for each channel.
absl::Status CheckChannels(const std::string& file, int64_t channels) {
  if (channels <= limits::kMaxChannels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": inputs have ", channels, " channels, the most is ", limits::kMaxChannels));
}

absl::StatusOr<DecodedDataset> Pair(NamedArray inputs, const NamedArray& labels, bool float32_targets,
                                    const AdmitBytes& admit) {
  if (inputs.array.shape.size() < 2 || labels.array.shape.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("expected inputs [n, ...] and labels [n]: ", inputs.file, " is [",
                                                   absl::StrJoin(inputs.array.shape, ", "), "], ", labels.file, " is [",
                                                   absl::StrJoin(labels.array.shape, ", "), "]"));
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckSizes(inputs));
  CHAINFLEET_RETURN_IF_ERROR(CheckSizes(labels));
  DecodedDataset data;
  data.num_rows = inputs.array.shape[0];
  if (data.num_rows != labels.array.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.file, " has ", data.num_rows, " rows, ", labels.file, " has ",
                                                   labels.array.shape[0], " labels"));
  }
  data.input_shape.assign(inputs.array.shape.begin() + 1, inputs.array.shape.end());
  if (data.input_shape.size() == 2) data.input_shape.insert(data.input_shape.begin(), 1);  // grey images: one channel
  // If there are too many features for a scale each, all features share one, as the pixels in a row do.
  const bool features = data.input_shape.size() == 1 && inputs.array.type != ArrayType::kUint8 &&
                        data.input_shape[0] <= limits::kMaxChannels;
  if (data.input_shape.size() == 3 || features) data.channels = data.input_shape[0];
  CHAINFLEET_RETURN_IF_ERROR(CheckChannels(inputs.file, data.channels));
  CHAINFLEET_RETURN_IF_ERROR(admit(data.num_rows * static_cast<int64_t>(sizeof(float))));
  CHAINFLEET_RETURN_IF_ERROR(float32_targets ? SetNumbers(labels, &data) : SetLabels(labels, &data));
  CHAINFLEET_RETURN_IF_ERROR(SetInputs(std::move(inputs), admit, &data));
  return data;
}

// Reads IDX or .npy content, gzipped or not; nullopt for other content.
absl::StatusOr<std::optional<Array>> ReadArray(const UploadedFile& file, const AdmitBytes& admit) {
  std::string content;
  if (IsGzip(file.bytes)) {
    CHAINFLEET_ASSIGN_OR_RETURN(content, Gunzip(file.bytes, admit));
  } else {
    CHAINFLEET_RETURN_IF_ERROR(admit(static_cast<int64_t>(file.bytes.size())));
    content = file.bytes;
  }
  if (IsIdx(content)) {
    CHAINFLEET_ASSIGN_OR_RETURN(Array array, ReadIdx(std::move(content)));
    return array;
  }
  if (content.starts_with("\x93NUMPY")) {
    CHAINFLEET_ASSIGN_OR_RETURN(Array array, ReadNpy(std::move(content)));
    return array;
  }
  return std::optional<Array>();
}

absl::StatusOr<DecodedDataset> DecodeArrays(std::vector<NamedArray> arrays, bool float32_targets,
                                            const AdmitBytes& admit) {
  if (arrays.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("give two files, inputs and labels: ", arrays.size(),
                                                   arrays.size() == 1 ? " was given" : " were given"));
  }
  if (arrays[0].array.shape.size() < arrays[1].array.shape.size()) std::swap(arrays[0], arrays[1]);
  return Pair(std::move(arrays[0]), arrays[1], float32_targets, admit);
}

// Returns the arrays of an .npz, or x and y of a zipped Zarr group.
absl::StatusOr<std::map<std::string, Array>> ReadArchive(const std::string& bytes, const AdmitBytes& admit) {
  CHAINFLEET_ASSIGN_OR_RETURN(const ZipReader archive, ZipReader::Open(bytes, ".npz or Zarr"));
  const auto root = ZarrRoot(archive.names());
  if (!root) return ReadNpz(bytes, {"x", "y"}, limits::kMaxBlobBytes, admit);
  int64_t largest = 0;  // the reader holds one stored chunk at a time
  const auto admit_largest = [&](int64_t bytes) -> absl::Status {
    if (bytes <= largest) return absl::OkStatus();
    CHAINFLEET_RETURN_IF_ERROR(admit(bytes - largest));
    largest = bytes;
    return absl::OkStatus();
  };
  const auto get = [&](const std::string& key, int64_t max_bytes) {
    return archive.Read(*root + key, max_bytes, admit_largest);
  };
  return ReadZarr({"x", "y"}, get, admit);
}

absl::StatusOr<DecodedDataset> DecodeArchive(const UploadedFile& file, bool float32_targets, const AdmitBytes& admit) {
  absl::StatusOr<std::map<std::string, Array>> read = ReadArchive(file.bytes, admit);
  if (!read.ok()) return Annotate(read.status(), file.name);
  auto& arrays = *read;
  const auto x = arrays.find("x"), y = arrays.find("y");
  if (x == arrays.end() || y == arrays.end()) {
    return absl::InvalidArgumentError(file.name +
                                      ": the archive must hold arrays x and y, as x.npy and y.npy or as a Zarr group");
  }
  return Pair({file.name + ": x", std::move(x->second)}, {file.name + ": y", std::move(y->second)}, float32_targets,
              admit);
}

absl::StatusOr<DecodedDataset> DecodeCifar(const std::vector<UploadedFile>& files, const AdmitBytes& admit) {
  // Admits twice the size: a growing buffer coexists with the buffer that it replaces.
  for (const UploadedFile& file : files) {
    CHAINFLEET_RETURN_IF_ERROR(admit(2 * static_cast<int64_t>(file.bytes.size())));
  }
  // Sizes distinguish the formats: CIFAR-10 content whose size also fits CIFAR-100 has at least 3074 records.
  const bool coarse = !files[0].bytes.empty() && files[0].bytes.size() % kCifar10RecordBytes != 0 &&
                      files[0].bytes.size() % kCifar100RecordBytes == 0;
  CifarImages images;
  for (const UploadedFile& file : files) {
    const absl::Status read = ReadCifar(file.bytes, coarse ? kCifar100RecordBytes : kCifar10RecordBytes, &images);
    if (!read.ok()) return Annotate(read, file.name);
  }
  DecodedDataset data{.is_uint8 = true, .input_shape = {3, 32, 32}, .channels = 3};
  data.num_rows = static_cast<int64_t>(images.labels.size());
  data.num_classes = images.num_classes;
  data.inputs = std::move(images.pixels);
  data.targets = std::move(images.labels);
  return data;
}

std::string FirstOf(const std::vector<std::string>& columns) {
  constexpr size_t kListed = 32;
  if (columns.size() <= kListed) return absl::StrJoin(columns, ", ");
  return absl::StrCat(absl::StrJoin(columns.begin(), columns.begin() + kListed, ", "), " and ",
                      columns.size() - kListed, " more");
}

absl::StatusOr<DecodedDataset> DecodeCsv(const UploadedFile& file, const DecodeOptions& options,
                                         const AdmitBytes& admit) {
  absl::StatusOr<CsvTable> read = ReadCsv(file.bytes, admit);
  if (!read.ok()) return Annotate(read.status(), file.name);
  const CsvTable& table = *read;
  const int64_t columns = static_cast<int64_t>(table.columns.size());
  if (columns < 2)
    return absl::InvalidArgumentError(file.name + ": expected at least one input column and a target column");
  const auto named = std::find(table.columns.begin(), table.columns.end(), options.target);
  const int64_t target = options.target.empty() ? columns - 1 : named - table.columns.begin();
  if (target == columns) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": no column \"", options.target, "\"; it has ", FirstOf(table.columns)));
  }
  CHAINFLEET_RETURN_IF_ERROR(CheckChannels(file.name, columns - 1));
  const int64_t input_bytes = table.num_rows * (columns - 1) * static_cast<int64_t>(sizeof(float));
  const int64_t target_bytes = table.num_rows * static_cast<int64_t>(sizeof(double));
  CHAINFLEET_RETURN_IF_ERROR(admit(input_bytes + target_bytes));
  NamedArray inputs{file.name, {.type = ArrayType::kFloat32, .shape = {table.num_rows, columns - 1}, .bytes = ""}};
  NamedArray targets{file.name, {.type = ArrayType::kFloat64, .shape = {table.num_rows}, .bytes = ""}};
  inputs.place = [&](int64_t row) { return absl::StrCat("line ", table.lines[row]); };
  targets.place = [&](int64_t row) {
    return absl::StrCat("line ", table.lines[row], ", column ", table.columns[target], ",");
  };
  inputs.array.bytes.reserve(static_cast<size_t>(input_bytes));
  targets.array.bytes.reserve(static_cast<size_t>(target_bytes));
  for (int64_t row = 0; row < table.num_rows; ++row) {
    const double* values = table.values.data() + row * columns;
    for (int64_t column = 0; column < columns; ++column) {
      if (column == target) continue;
      const auto value = static_cast<float>(values[column]);
      inputs.array.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    targets.array.bytes.append(reinterpret_cast<const char*>(values + target), sizeof(double));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(DecodedDataset data, Pair(std::move(inputs), targets, options.float32_targets, admit));
  data.channels = columns - 1;
  return data;
}

}  // namespace

absl::StatusOr<DecodedDataset> DecodeDataset(const std::vector<UploadedFile>& files, const DecodeOptions& options,
                                             const AdmitBytes& admit) {
  if (files.empty()) return absl::InvalidArgumentError("no file was given");
  const auto all_end_with = [&](const char* ending) {
    return std::all_of(files.begin(), files.end(), [&](const UploadedFile& f) { return f.name.ends_with(ending); });
  };
  if (files.size() == 1 && files[0].name.ends_with(".csv")) return DecodeCsv(files[0], options, admit);
  if (!options.target.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files[0].name, ": a target column was named, which only a CSV file has"));
  }
  if (all_end_with(".bin")) {
    if (options.float32_targets) return absl::InvalidArgumentError(files[0].name + ": CIFAR has labels, no numbers");
    return DecodeCifar(files, admit);
  }
  if (files.size() == 1 && files[0].bytes.starts_with("PK")) {
    return DecodeArchive(files[0], options.float32_targets, admit);
  }
  std::vector<NamedArray> arrays;
  for (const UploadedFile& file : files) {
    absl::StatusOr<std::optional<Array>> array = ReadArray(file, admit);
    if (!array.ok()) return Annotate(array.status(), file.name);
    if (!array->has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.name,
          ": not a known format: IDX (.gz), .npy, .npz or zipped Zarr with x and y, CIFAR binary (.bin) or .csv are"));
    }
    arrays.push_back({file.name, std::move(**array)});
  }
  return DecodeArrays(std::move(arrays), options.float32_targets, admit);
}

}  // namespace chainfleet
