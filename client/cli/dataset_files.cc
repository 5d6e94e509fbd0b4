#include "client/cli/dataset_files.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/output_file.h"
#include "client/cli/zarr_folder.h"
#include "core/base/content_limits.h"
#include "core/formats/cifar.h"
#include "core/formats/csv.h"
#include "core/formats/idx.h"
#include "core/formats/npz.h"

namespace chainfleet {
namespace {

constexpr int64_t kCallBytes = limits::kMaxMessageBytes / 2;

bool HasBytes(const v1::Dataset& dataset) { return dataset.input_type() == v1::UINT8; }
bool HasLabels(const v1::Dataset& dataset) { return dataset.target_type() != v1::FLOAT32_TARGETS; }

int64_t InputValues(const v1::Dataset& dataset) {
  int64_t values = 1;
  for (const int64_t size : dataset.input_shape()) values *= size;
  return values;
}

int64_t InputBytes(const v1::Dataset& dataset) { return InputValues(dataset) * (HasBytes(dataset) ? 1 : 4); }

std::string InWords(const v1::Dataset& dataset) {
  return absl::StrCat(HasBytes(dataset) ? "uint8" : "float32", " [", absl::StrJoin(dataset.input_shape(), ", "), "]");
}

std::string WhyNotIdx(const v1::Dataset& dataset) {
  if (!HasBytes(dataset)) return absl::StrCat("idx holds uint8 inputs, these are ", InWords(dataset));
  if (!HasLabels(dataset)) return "idx holds labels, these are numbers to predict";
  if (dataset.num_classes() > 256)
    return absl::StrCat("idx holds labels to 255, of 256 classes, these are of ", dataset.num_classes());
  if (dataset.input_shape_size() > 3)
    return absl::StrCat("idx holds inputs of 3 dimensions at most, these are ", InWords(dataset));
  return "";
}

std::string WhyNotCifar(const v1::Dataset& dataset) {
  const std::vector<int64_t> shape(dataset.input_shape().begin(), dataset.input_shape().end());
  if (!HasBytes(dataset) || shape != std::vector<int64_t>{3, 32, 32}) {
    return absl::StrCat("cifar holds uint8 [3, 32, 32], these inputs are ", InWords(dataset));
  }
  if (!HasLabels(dataset)) return "cifar holds labels, these are numbers to predict";
  if (dataset.num_classes() > 10) {
    return absl::StrCat("cifar holds the 10 classes of CIFAR-10, these are ", dataset.num_classes(),
                        " (files of CIFAR-100 have coarse labels, which are not stored)");
  }
  return "";
}

std::string WhyNotCsv(const v1::Dataset& dataset) {
  if (!HasBytes(dataset) && dataset.input_shape_size() == 1) return "";
  return absl::StrCat("csv holds rows of float32 numbers, these inputs are ", InWords(dataset));
}

// The reason why the format cannot hold the data set, "" if it can.
std::string WhyNot(const v1::Dataset& dataset, const std::string& format) {
  if (format == "idx") return WhyNotIdx(dataset);
  if (format == "cifar") return WhyNotCifar(dataset);
  if (format == "csv") return WhyNotCsv(dataset);
  return "";
}

// Bytes of all rows' values in a file; for a CSV a lower bound.
int64_t FileBytes(const v1::Dataset& dataset, const std::string& format) {
  if (format == "csv") return dataset.num_rows() * 2 * (InputValues(dataset) + 1);  // a digit and a comma
  return dataset.num_rows() * (InputBytes(dataset) + (format == "idx" || format == "cifar" ? 1 : 4));
}

absl::Status OverUpload(const v1::Dataset& dataset, const std::string& format) {
  return absl::ResourceExhaustedError(absl::StrCat("as ", format, " data set ", dataset.name(), " is over the ",
                                                   limits::kMaxDatasetUploadBytes / limits::kMiB,
                                                   " MiB that one upload may hold: it could not be put again"));
}

// The double with the fewest digits that rounds to the same float: 0.1 instead of 0.10000000149011612.
double InFewDigits(float value) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
  double read = 0;
  std::from_chars(digits, end.ptr, read);
  return static_cast<float>(read) == value ? read : value;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

absl::Status CheckDatasetFormat(const v1::Dataset& dataset, const std::string& format) {
  if (const std::string why = WhyNot(dataset, format); !why.empty()) {
    std::vector<std::string> others;
    std::ranges::copy_if(kDatasetFormats, std::back_inserter(others),
                         [&](const std::string& other) { return WhyNot(dataset, other).empty(); });
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("data set ", dataset.name(), " cannot be written as ", format, ": ",
                                                   why, "; choose --format ", absl::StrJoin(others, " or "))),
        "CANNOT_HOLD");
  }
  if (FileBytes(dataset, format) > limits::kMaxDatasetUploadBytes) return OverUpload(dataset, format);
  if (InputBytes(dataset) + limits::kCountedRowBytes > limits::kMaxReplyBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a row of data set ", dataset.name(), " has ", InputBytes(dataset),
                                                     " bytes: one of over 15 MiB cannot be sent back"));
  }
  return absl::OkStatus();
}

absl::Status CheckDatasetPath(const std::string& format, const std::string& path) {
  static const std::map<std::string, std::string> endings = {{"npz", ".npz"}, {"cifar", ".bin"}, {"csv", ".csv"}};
  const auto ending = endings.find(format);
  if (ending == endings.end() || path.ends_with(ending->second)) return absl::OkStatus();
  return WithReason(absl::InvalidArgumentError(absl::StrCat("-o is the file to write, and `dataset put` tells ", format,
                                                            " by a name that ends with ", ending->second, ": \"", path,
                                                            "\" does not")),
                    kUsageReason);
}

int64_t RowsPerCall(const v1::Dataset& dataset) {
  return std::max<int64_t>(1, kCallBytes / (InputBytes(dataset) + limits::kCountedRowBytes));
}

absl::Status ReplacedWhileRead(const v1::Dataset& dataset) {
  return absl::AbortedError(absl::StrCat("data set ", dataset.name(), " was replaced while it was read: get it again"));
}

DatasetFiles::DatasetFiles(v1::Dataset dataset, std::string format)
    : dataset_(std::move(dataset)), format_(std::move(format)) {}

absl::Status DatasetFiles::Add(const v1::DatasetRowValues& rows) {
  const int64_t count = HasLabels(dataset_) ? rows.labels_size() : rows.targets_size();
  if (count == 0 || rows.type() != dataset_.input_type() ||
      static_cast<int64_t>(rows.inputs().size()) != count * InputBytes(dataset_)) {
    return ReplacedWhileRead(dataset_);
  }
  num_rows_ += count;
  for (const int32_t label : rows.labels()) largest_label_ = std::max(largest_label_, label);
  if (format_ == "csv") return AddText(rows, count);
  inputs_ += rows.inputs();
  labels_.insert(labels_.end(), rows.labels().begin(), rows.labels().end());
  targets_.insert(targets_.end(), rows.targets().begin(), rows.targets().end());
  return absl::OkStatus();
}

absl::Status DatasetFiles::AddText(const v1::DatasetRowValues& rows, int64_t num_rows) {
  CsvTable table{.columns = {}, .num_rows = num_rows, .values = {}, .lines = {}};
  const int64_t inputs = InputValues(dataset_);
  // Column names are not stored. Only the first rows get a header; later ones get the names of columns without header.
  for (int64_t c = 0; c < inputs; ++c) table.columns.push_back(absl::StrCat(text_.empty() ? "x" : "", c));
  table.columns.push_back(text_.empty() ? "y" : absl::StrCat(inputs));
  table.values.reserve(static_cast<size_t>(num_rows * (inputs + 1)));
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t i = row * inputs; i < (row + 1) * inputs; ++i) {
      float value;
      std::memcpy(&value, rows.inputs().data() + i * static_cast<int64_t>(sizeof value), sizeof value);
      table.values.push_back(InFewDigits(value));
    }
    const int at = static_cast<int>(row);
    table.values.push_back(HasLabels(dataset_) ? rows.labels(at) : InFewDigits(rows.targets(at)));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, WriteCsv(table));
  text_ += text;
  if (static_cast<int64_t>(text_.size()) > limits::kMaxDatasetUploadBytes) return OverUpload(dataset_, format_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DatasetFiles::WriteIdxPair(const std::string& path) {
  Array images{.type = ArrayType::kUint8, .shape = {num_rows_}, .bytes = std::move(inputs_)};
  // Grey images are [n, height, width] in usual IDX files, and are read as images with one channel.
  const auto& shape = dataset_.input_shape();
  images.shape.insert(images.shape.end(), shape.begin() + (shape.size() == 3 && shape[0] == 1 ? 1 : 0), shape.end());
  const Array labels{
      .type = ArrayType::kUint8, .shape = {num_rows_}, .bytes = std::string(labels_.begin(), labels_.end())};
  const std::vector<std::string> paths = {absl::StrCat(path, "-images-idx", images.shape.size(), "-ubyte"),
                                          path + "-labels-idx1-ubyte"};
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string image_bytes, WriteIdx(images));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string label_bytes, WriteIdx(labels));
  CHAINFLEET_RETURN_IF_ERROR(WriteOutputFile(paths[0], image_bytes));
  CHAINFLEET_RETURN_IF_ERROR(WriteOutputFile(paths[1], label_bytes));
  return paths;
}

absl::Status DatasetFiles::WriteArrays(const std::string& path) {
  Array x{.type = HasBytes(dataset_) ? ArrayType::kUint8 : ArrayType::kFloat32, .shape = {num_rows_}, .bytes = ""};
  x.shape.insert(x.shape.end(), dataset_.input_shape().begin(), dataset_.input_shape().end());
  x.bytes = std::move(inputs_);
  const bool labels = HasLabels(dataset_);
  std::map<std::string, Array> arrays;
  arrays["x"] = std::move(x);
  arrays["y"] = {
      labels ? ArrayType::kInt32 : ArrayType::kFloat32, {num_rows_}, labels ? BytesOf(labels_) : BytesOf(targets_)};
  if (format_ == "zarr") return WriteZarrFolder(path, arrays);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, WriteNpz(arrays));
  return WriteOutputFile(path, bytes);
}

absl::StatusOr<std::vector<std::string>> DatasetFiles::WriteTo(const std::string& path) {
  if (format_ == "idx") return WriteIdxPair(path);
  absl::Status written;
  if (format_ == "csv") {
    written = WriteOutputFile(path, text_);
  } else if (format_ == "cifar") {
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, WriteCifar({std::move(inputs_), std::move(labels_), 10}));
    written = WriteOutputFile(path, bytes);
  } else {
    written = WriteArrays(path);
  }
  CHAINFLEET_RETURN_IF_ERROR(written);
  return std::vector<std::string>{path};
}

std::vector<std::string> DatasetFiles::Differences() const {
  std::vector<std::string> differences;
  const int64_t classes = !HasLabels(dataset_) ? 0 : format_ == "cifar" ? 10 : largest_label_ + 1;
  if (classes != dataset_.num_classes()) {
    differences.push_back(absl::StrCat(format_, " does not tell the number of classes: put from it, the data set has ",
                                       classes, ", not ", dataset_.num_classes()));
  }
  const auto& shape = dataset_.input_shape();
  const int64_t scales = format_ == "csv" || shape.size() == 3 ? shape[0] : 1;
  const int64_t present = dataset_.normalisation().mean_size();
  if (scales != present) {
    differences.push_back(absl::StrCat("put from ", format_, ", the inputs are standardised with ", scales,
                                       scales == 1 ? " mean and deviation" : " means and deviations",
                                       format_ == "csv" ? ", one a column" : " for all columns", ", not with ",
                                       present));
  }
  return differences;
}

}  // namespace chainfleet
