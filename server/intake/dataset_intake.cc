#include "server/intake/dataset_intake.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/ids.h"
#include "core/base/limits.h"
#include "core/domain/parameter_shape.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/safetensors.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

// Bytes count as x / 255.
double ValueAt(const DecodedDataset& data, int64_t index) {
  if (data.is_uint8) return static_cast<uint8_t>(data.inputs[static_cast<size_t>(index)]) / 255.0;
  float value;
  std::memcpy(&value, data.inputs.data() + index * 4, sizeof value);
  return value;
}

// Welford's update: computes the variance of millions of pixels without cancellation.
class Moments {
 public:
  void Add(double x) {
    const double delta = x - mean_;
    mean_ += delta / ++count_;
    squares_ += delta * (x - mean_);
  }
  double mean() const { return mean_; }
  // 1 for a constant channel, so that standardising it is harmless.
  double stddev() const {
    const double deviation = std::sqrt(squares_ / count_);
    return deviation > 0 ? deviation : 1;
  }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

Normalisation Measure(const DecodedDataset& data) {
  const int64_t row = NumValues(data.input_shape), plane = row / data.channels;
  Normalisation normalisation;
  for (int64_t c = 0; c < data.channels; ++c) {
    Moments moments;
    for (int64_t i = 0; i < data.num_rows; ++i) {
      for (int64_t p = 0; p < plane; ++p) moments.Add(ValueAt(data, i * row + c * plane + p));
    }
    normalisation.mean.push_back(moments.mean());
    normalisation.stddev.push_back(moments.stddev());
  }
  return normalisation;
}

TargetUnits Measure(const std::vector<int32_t>&) { return {}; }

TargetUnits Measure(const std::vector<float>& targets) {
  Moments moments;
  for (const float target : targets) moments.Add(target);
  return {moments.mean(), moments.stddev()};
}

void WarnOfChannelsLast(const std::vector<int64_t>& shape, std::vector<std::string>* warnings) {
  const auto is_channels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  if (shape.size() != 3 || is_channels(shape[0]) || !is_channels(shape[2])) return;
  warnings->push_back(absl::StrCat("inputs of shape [", absl::StrJoin(shape, ", "),
                                   "] look like images whose channels come last, but networks take [channels, height, "
                                   "width]: put x.transpose(0, 3, 1, 2)"));
}

void WarnOfEmptyClasses(const std::vector<int32_t>& labels, int64_t num_classes, std::vector<std::string>* warnings) {
  std::vector<bool> has_row(static_cast<size_t>(num_classes));
  for (const int32_t label : labels) has_row[static_cast<size_t>(label)] = true;
  const int64_t empty = std::ranges::count(has_row, false);
  if (empty == 0) return;
  const auto first = std::ranges::find(has_row, false) - has_row.begin();
  warnings->push_back(absl::StrCat("no row has ", empty == 1 ? "label " : absl::StrCat(empty, " of the labels, as "),
                                   first, ", but a network learns ", num_classes,
                                   " classes: number them 0, 1, ... without gaps"));
}

std::vector<std::string> WarningsOf(const DecodedDataset& data) {
  std::vector<std::string> warnings;
  WarnOfChannelsLast(data.input_shape, &warnings);
  if (const auto* labels = std::get_if<std::vector<int32_t>>(&data.targets)) {
    WarnOfEmptyClasses(*labels, data.num_classes, &warnings);
  }
  return warnings;
}

template <typename T>
TensorView TensorOf(const std::vector<T>& targets, int64_t first_row, int64_t num_rows) {
  constexpr bool kLabels = std::is_same_v<T, int32_t>;
  return {kLabels ? "labels" : "targets",
          kLabels ? TensorType::kInt32 : TensorType::kFloat32,
          {num_rows},
          reinterpret_cast<const char*>(&targets[first_row]),
          num_rows * static_cast<int64_t>(sizeof(T))};
}

std::string EncodeShard(const DecodedDataset& data, InputType type, int64_t first_row, int64_t num_rows) {
  const int64_t row_bytes = NumValues(data.input_shape) * ItemBytes(type);
  std::vector<int64_t> shape = data.input_shape;
  shape.insert(shape.begin(), num_rows);
  return WriteSafetensors(
      {{"inputs", type == InputType::kUint8 ? TensorType::kUint8 : TensorType::kFloat32, std::move(shape),
        data.inputs.data() + first_row * row_bytes, num_rows * row_bytes},
       std::visit([&](const auto& targets) { return TensorOf(targets, first_row, num_rows); }, data.targets)},
      {});
}

// Hashes type, shape and shards: data sets with equal digests are equal.
DigestHex ContentDigest(const Dataset& dataset) {
  Sha256 hash;
  hash.UpdateString("chainfleet dataset 1");
  hash.UpdateInteger(static_cast<int64_t>(dataset.input_type));
  hash.UpdateInteger(static_cast<int64_t>(dataset.input_shape.size()));
  for (const int64_t size : dataset.input_shape) hash.UpdateInteger(size);
  for (const DatasetShard& shard : dataset.shards) {
    hash.UpdateInteger(shard.num_rows);
    hash.UpdateString(shard.object.sha256);
  }
  return hash.Hex();
}

}  // namespace

absl::Status DatasetUpload::Begin(const std::string& name, int32_t num_files, const DecodeOptions& options,
                                  std::vector<std::string> class_names) {
  if (!name_.empty()) return absl::InvalidArgumentError("PutDataset has a second header");
  CHAINFLEET_RETURN_IF_ERROR(CheckName("data set", name));
  if (num_files > limits::kMaxDatasetFiles) {
    return absl::InvalidArgumentError(absl::StrCat("data set ", name, " announces ", num_files, " files, at most ",
                                                   limits::kMaxDatasetFiles, " are taken: put them into fewer"));
  }
  name_ = name;
  num_files_ = num_files;
  options_ = options;
  class_names_ = std::move(class_names);
  return absl::OkStatus();
}

absl::Status DatasetUpload::StartFile(const std::string& file_name, int64_t size_bytes, const std::string& uri) {
  if (name_.empty())
    return absl::InvalidArgumentError("the first message of PutDataset must be the header with the name");
  if (static_cast<int32_t>(files_.size()) >= num_files_) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set ", name_, " has more files than the ", num_files_, " that its header announces"));
  }
  if (file_name.size() > limits::kMaxFileNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name of file ", files_.size() + 1, " has ", file_name.size(),
                                                   " bytes, at most ", limits::kMaxFileNameBytes, " are taken"));
  }
  if (!uri.empty() && size_bytes != 0)
    return absl::InvalidArgumentError(absl::StrCat(uri, ": a file that is named by URI has size_bytes 0"));
  CHAINFLEET_RETURN_IF_ERROR(share_->Add(static_cast<int64_t>(file_name.size() + uri.size())));
  files_.push_back({file_name, ""});
  announced_bytes_.push_back(size_bytes);
  uris_.push_back(uri);
  return absl::OkStatus();
}

absl::Status DatasetUpload::CheckComplete() const {
  bool complete = !name_.empty() && static_cast<int32_t>(files_.size()) == num_files_;
  for (size_t i = 0; i < files_.size(); ++i)
    complete &= static_cast<int64_t>(files_[i].bytes.size()) == announced_bytes_[i];
  if (complete) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the upload of data set ", name_, " broke off: ", files_.size(),
                                                 " of ", num_files_,
                                                 " files came, not all of them whole; send it again"));
}

absl::Status DatasetUpload::AddData(const std::string& data) {
  if (files_.empty()) return absl::InvalidArgumentError("data came before the first file of PutDataset");
  if (!uris_.back().empty())
    return absl::InvalidArgumentError(absl::StrCat(uris_.back(), ": no data may follow a file that is named by URI"));
  total_bytes_ += static_cast<int64_t>(data.size());
  if (total_bytes_ > limits::kMaxDatasetUploadBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("data set ", name_, " is over the ",
                                                     limits::kMaxDatasetUploadBytes / limits::kMiB,
                                                     " MiB that one upload may hold"));
  }
  CHAINFLEET_RETURN_IF_ERROR(share_->Add(static_cast<int64_t>(data.size())));
  files_.back().bytes += data;
  return absl::OkStatus();
}

bool DatasetUpload::HasUris() const {
  return std::any_of(uris_.begin(), uris_.end(), [](const std::string& uri) { return !uri.empty(); });
}

absl::Status DatasetUpload::Fetch(const DatasetRoots& roots, const std::function<bool()>& wanted) {
  const auto admit = [this](int64_t size_bytes) { return share_->Add(size_bytes); };
  for (size_t i = 0; i < files_.size(); ++i) {
    if (uris_[i].empty()) continue;
    if (!wanted()) return absl::CancelledError("nobody waits for the data set any more");
    const auto take = [&bytes = files_[i].bytes](std::string_view part) {
      bytes += part;
      return absl::OkStatus();
    };
    CHAINFLEET_RETURN_IF_ERROR(roots.Read(uris_[i], limits::kMaxDatasetUploadBytes - total_bytes_, admit, take));
    total_bytes_ += static_cast<int64_t>(files_[i].bytes.size());
  }
  return absl::OkStatus();
}

std::vector<std::string> CutDataset::ObjectNames() const {
  std::vector<std::string> names;
  for (const DatasetShard& shard : description.shards) names.push_back(shard.object.name);
  return names;
}

absl::StatusOr<CutDataset> Cut(const DatasetUpload& upload, const std::string& store_incarnation, uint64_t nonce) {
  absl::StatusOr<DecodedDataset> decoded =
      DecodeDataset(upload.files(), upload.options(), [&](int64_t bytes) { return upload.share()->Add(bytes); });
  if (!decoded.ok()) return Annotate(decoded.status(), absl::StrCat("data set ", upload.name()));
  CutDataset cut{.data = *std::move(decoded), .description = {}};
  const DecodedDataset& data = cut.data;
  Dataset& dataset = cut.description;
  dataset = {.name = upload.name(),
             .input_type = data.is_uint8 ? InputType::kUint8 : InputType::kFloat32,
             .input_shape = data.input_shape,
             .num_rows = data.num_rows,
             .targets = std::holds_alternative<std::vector<float>>(data.targets) ? Targets(Numbers())
                                                                                 : Classes{data.num_classes},
             .normalisation = Measure(data),
             .target_units = std::visit([](const auto& targets) { return Measure(targets); }, data.targets),
             .class_names = upload.class_names(),
             .warnings = WarningsOf(data)};
  CHAINFLEET_RETURN_IF_ERROR(CheckClassNames(dataset.class_names, dataset.targets));
  const int64_t row_bytes = InputBytes(dataset) + static_cast<int64_t>(sizeof(int32_t));
  const int64_t rows_per_shard = std::max<int64_t>(1, limits::kDatasetShardBytes / row_bytes);
  for (int64_t first = 0; first < dataset.num_rows; first += rows_per_shard) {
    const int64_t rows = std::min(rows_per_shard, dataset.num_rows - first);
    const std::string bytes = EncodeShard(data, dataset.input_type, first, rows);
    const DigestHex sha256 = Sha256Hex(bytes);
    const std::string object = DatasetObjectName(store_incarnation, sha256, nonce);
    dataset.shards.push_back({first, rows, {object, static_cast<int64_t>(bytes.size()), sha256}});
  }
  dataset.digest = ContentDigest(dataset);
  return cut;
}

absl::Status StoreShards(const CutDataset& cut, BlobStore* blobs) {
  for (const DatasetShard& shard : cut.description.shards) {
    // Encode again: to keep all encoded shards would double the memory of the data.
    const std::string bytes = EncodeShard(cut.data, cut.description.input_type, shard.first_row, shard.num_rows);
    CHAINFLEET_RETURN_IF_ERROR(PutContentAddressed(blobs, shard.object.name, bytes));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
