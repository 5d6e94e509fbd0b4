#include "core/store/draw_codec/segment_codec.h"

#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/store/draw_codec/safetensors.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

constexpr char kFormatKey[] = "chainfleet_segment_format";

absl::Status Damaged(const std::string& what) { return absl::DataLossError("segment object is damaged: " + what); }

int64_t NumValues(const std::vector<int64_t>& shape, size_t from) {
  int64_t values = 1;
  for (size_t d = from; d < shape.size(); ++d) values *= shape[d];
  return values;
}

template <typename T>
TensorView VectorTensor(const std::string& name, TensorType type, const std::vector<T>& values) {
  return {name,
          type,
          {static_cast<int64_t>(values.size())},
          reinterpret_cast<const char*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

// Appends one parameter of one kind: [draws, shape...].
void AppendParameter(const std::vector<Draw>& draws, size_t kind, const ParameterShape& parameter, std::string* bytes) {
  const int64_t size = NumValues(parameter.shape, 0);
  for (const Draw& draw : draws) {
    CHAINFLEET_CHECK(kind < draw.theta.size() &&
                     static_cast<int64_t>(draw.theta[kind].size()) >= parameter.offset + size)
        << "the draw at step " << draw.step << " lacks values";
    bytes->append(reinterpret_cast<const char*>(draw.theta[kind].data() + parameter.offset),
                  static_cast<size_t>(size) * sizeof(float));
  }
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadVector(const Safetensors& file, const std::string& name, TensorType type) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr || tensor->type != type || tensor->shape.size() != 1) return Damaged(name + " is missing");
  std::vector<T> values(static_cast<size_t>(tensor->shape[0]));
  std::memcpy(values.data(), tensor->data, static_cast<size_t>(tensor->size_bytes));
  return values;
}

template <typename T>
absl::Status ReadNumber(const Safetensors& file, const std::string& key, T* value) {
  const auto it = file.metadata.find(key);
  if (it == file.metadata.end() || !absl::SimpleAtoi(it->second, value))
    return Damaged("metadata " + key + " is missing");
  return absl::OkStatus();
}

absl::Status ReadMetadata(const Safetensors& file, SegmentContent* content) {
  int32_t format = 0;
  CHAINFLEET_RETURN_IF_ERROR(ReadNumber(file, kFormatKey, &format));
  if (format < kOldestSegmentFormatVersion || format > kSegmentFormatVersion) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("segment format ", format, " cannot be read: this build reads ",
                                                   kOldestSegmentFormatVersion, " to ", kSegmentFormatVersion)),
        "VERSION_MISMATCH");
  }
  CHAINFLEET_RETURN_IF_ERROR(ReadNumber(file, "chain", &content->chain.index));
  CHAINFLEET_RETURN_IF_ERROR(ReadNumber(file, "first_index", &content->segment.first_index));
  const auto job = file.metadata.find("job"), parent = file.metadata.find("parent_digest");
  if (job == file.metadata.end() || parent == file.metadata.end())
    return Damaged("metadata job or parent_digest is missing");
  content->chain.job = job->second;
  content->segment.parent_digest = parent->second;
  return absl::OkStatus();
}

// Returns the number of values that one of `num_draws` draws has of the kind, all parameters together.
size_t ValuesPerDraw(const Safetensors& file, DrawKind kind, size_t num_draws) {
  const std::string prefix = ToString(kind) + "/";
  size_t bytes = 0;
  for (const TensorView& tensor : file.tensors) {
    if (tensor.name.starts_with(prefix)) bytes += static_cast<size_t>(tensor.size_bytes);
  }
  return bytes / sizeof(float) / num_draws;
}

// Appends tensor "kind/parameter" [draws, ...] to the draws.
absl::Status ReadParameter(const Safetensors& file, const TensorView& tensor, SegmentContent* content) {
  const absl::StatusOr<DrawKind> kind = DrawKindFromString(tensor.name.substr(0, tensor.name.find('/')));
  if (!kind.ok() || tensor.type != TensorType::kFloat32 || tensor.shape.empty() ||
      tensor.shape[0] != static_cast<int64_t>(content->draws.size())) {
    return Damaged("unexpected tensor " + tensor.name);
  }
  std::vector<DrawKind>& kinds = content->segment.kinds;
  if (kinds.empty() || kinds.back() < *kind) {
    kinds.push_back(*kind);
    // Else the vectors would grow with each tensor to up to twice their size, which the caches of draws do not count.
    const size_t num_values = ValuesPerDraw(file, *kind, content->draws.size());
    for (Draw& draw : content->draws) draw.theta.emplace_back().reserve(num_values);
  }
  if (kinds.back() != *kind) return Damaged("kinds are out of order");
  const int64_t size = NumValues(tensor.shape, 1);
  const float* values = reinterpret_cast<const float*>(tensor.data);
  for (Draw& draw : content->draws) {
    std::vector<float>& theta = draw.theta.back();
    const size_t begin = theta.size();
    theta.resize(begin + static_cast<size_t>(size));
    std::memcpy(theta.data() + begin, values,
                static_cast<size_t>(size) * sizeof(float));  // may be unaligned in the file
    values += size;
  }
  return absl::OkStatus();
}

DigestHex DigestOf(const ChainId& chain, const Segment& segment, const std::vector<Draw>& draws) {
  Sha256 hash;
  hash.UpdateString("chainfleet segment 1");
  hash.UpdateString(segment.parent_digest);
  hash.UpdateString(chain.job);
  hash.UpdateInteger(chain.index);
  hash.UpdateInteger(segment.first_index);
  hash.UpdateInteger(segment.num_draws());
  for (const int64_t step : segment.steps) hash.UpdateInteger(step);
  hash.UpdateInteger(static_cast<int64_t>(segment.kinds.size()));
  for (const DrawKind kind : segment.kinds) hash.UpdateString(ToString(kind));
  for (const double weight : segment.weights) hash.Update(&weight, sizeof weight);
  for (size_t kind = 0; kind < segment.kinds.size(); ++kind) {
    for (const Draw& draw : draws) {
      hash.UpdateInteger(static_cast<int64_t>(draw.theta[kind].size()));
      hash.Update(draw.theta[kind].data(), draw.theta[kind].size() * sizeof(float));
    }
  }
  return hash.Hex();
}

}  // namespace

std::string EncodeSegment(const ChainId& chain, const std::vector<Draw>& draws,
                          const std::vector<ParameterShape>& parameters, Segment* segment) {
  for (const Draw& draw : draws) {
    segment->steps.push_back(draw.step);
    segment->weights.push_back(draw.weight);
  }
  std::vector<TensorView> tensors = {VectorTensor("steps", TensorType::kInt64, segment->steps),
                                     VectorTensor("weights", TensorType::kFloat64, segment->weights)};
  const auto num_draws = static_cast<int64_t>(draws.size());
  for (const DrawKind kind : segment->kinds) {
    for (const ParameterShape& p : parameters) {
      std::vector<int64_t> shape = p.shape;
      shape.insert(shape.begin(), num_draws);
      const int64_t size_bytes = NumValues(shape, 0) * static_cast<int64_t>(sizeof(float));
      tensors.push_back({ToString(kind) + "/" + p.name, TensorType::kFloat32, std::move(shape), nullptr, size_bytes});
    }
  }
  std::string bytes = SafetensorsHeader(tensors, {{kFormatKey, absl::StrCat(kSegmentFormatVersion)},
                                                  {"job", chain.job},
                                                  {"chain", absl::StrCat(chain.index)},
                                                  {"first_index", absl::StrCat(segment->first_index)},
                                                  {"parent_digest", segment->parent_digest}});
  size_t size = bytes.size();
  for (const TensorView& tensor : tensors) size += static_cast<size_t>(tensor.size_bytes);
  bytes.reserve(size);
  for (size_t t = 0; t < 2; ++t) bytes.append(tensors[t].data, static_cast<size_t>(tensors[t].size_bytes));
  for (size_t kind = 0; kind < segment->kinds.size(); ++kind) {  // without copies of the draws between
    for (const ParameterShape& p : parameters) AppendParameter(draws, kind, p, &bytes);
  }
  segment->digest = DigestOf(chain, *segment, draws);
  return bytes;
}

absl::StatusOr<SegmentContent> DecodeSegment(const std::string& bytes) {
  const absl::StatusOr<Safetensors> file = ParseSafetensors(bytes);
  if (!file.ok()) return Damaged(std::string(file.status().message()));
  SegmentContent content;
  CHAINFLEET_RETURN_IF_ERROR(ReadMetadata(*file, &content));
  std::vector<int64_t>& steps = content.segment.steps;
  std::vector<double>& weights = content.segment.weights;
  CHAINFLEET_ASSIGN_OR_RETURN(steps, ReadVector<int64_t>(*file, "steps", TensorType::kInt64));
  CHAINFLEET_ASSIGN_OR_RETURN(weights, ReadVector<double>(*file, "weights", TensorType::kFloat64));
  if (steps.empty() || steps.size() != weights.size()) return Damaged("steps and weights disagree");
  for (size_t i = 0; i < steps.size(); ++i) content.draws.push_back({steps[i], weights[i], {}});
  for (const TensorView& tensor : file->tensors) {
    if (tensor.name == "steps" || tensor.name == "weights") continue;
    CHAINFLEET_RETURN_IF_ERROR(ReadParameter(*file, tensor, &content));
  }
  if (content.segment.kinds.empty()) return Damaged("it holds no draw");
  for (const std::vector<float>& theta : content.draws[0].theta) {
    if (theta.size() != content.draws[0].theta[0].size()) return Damaged("its kinds differ in size");
  }
  content.segment.digest = DigestOf(content.chain, content.segment, content.draws);
  return content;
}

}  // namespace chainfleet
