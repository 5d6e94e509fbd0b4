#include "client/cli/draw_arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/saturating.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

constexpr char kSteps[] = "steps", kWeights[] = "weights";  // tensors of a segment that are not parameters
constexpr int64_t kMostSpooledBytes = int64_t{1} << 60;
constexpr double kMostRepeats = 1e9;

// Bytes of one draw.
int64_t RowBytes(const TensorView& tensor) { return tensor.size_bytes / std::max<int64_t>(tensor.shape[0], 1); }

// Writes `count` bytes, from byte `at` on, of a float32 array that is all NaN.
void FillWithNan(int64_t at, char* to, int64_t count) {
  constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
  char item[sizeof kMissing];
  std::memcpy(item, &kMissing, sizeof item);
  for (int64_t i = 0; i < count; ++i) to[i] = item[static_cast<size_t>(at + i) % sizeof item];
}

// Concatenates the columns of all chains; `missing` pads shorter chains.
template <typename T>
Array Padded(const std::vector<std::vector<T>>& columns, int64_t longest, ArrayType type, T missing) {
  Array array{type, {static_cast<int64_t>(columns.size()), longest}, ""};
  for (const std::vector<T>& column : columns) {
    array.bytes.append(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T));
    for (auto row = static_cast<int64_t>(column.size()); row < longest; ++row) {
      array.bytes.append(reinterpret_cast<const char*>(&missing), sizeof missing);
    }
  }
  return array;
}

template <typename T>
Array Column(const std::vector<T>& values, ArrayType type) {
  return {type,
          {static_cast<int64_t>(values.size())},
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

}  // namespace

StreamedArray StackChains(std::vector<StreamedArray> chains, int64_t rows, std::vector<std::string> dimensions) {
  StreamedArray stack{chains[0].name, chains[0].type, chains[0].shape, std::move(dimensions), nullptr};
  stack.shape[0] = rows;
  const int64_t chain_bytes = stack.size_bytes();
  stack.shape.insert(stack.shape.begin(), static_cast<int64_t>(chains.size()));
  stack.read = [chains = std::move(chains), chain_bytes](int64_t at, char* to, int64_t count) {
    while (count > 0) {
      const StreamedArray& chain = chains[static_cast<size_t>(at / chain_bytes)];
      const int64_t in_chain = at % chain_bytes, here = std::min(count, chain_bytes - in_chain);
      const int64_t present = std::clamp<int64_t>(chain.size_bytes() - in_chain, 0, here);
      CHAINFLEET_RETURN_IF_ERROR(chain.read(in_chain, to, present));
      FillWithNan(in_chain + present, to + present, here - present);
      at += here;
      to += here;
      count -= here;
    }
    return absl::OkStatus();
  };
  return stack;
}

std::map<int32_t, int64_t> RowsOf(const std::vector<v1::SegmentRecord>& segments, bool repeat) {
  std::map<int32_t, int64_t> rows;
  for (const v1::SegmentRecord& record : segments) {
    if (record.deleted() || record.corrupt()) continue;
    const v1::Segment& segment = record.segment();
    int64_t& of_chain = rows[record.chain().index()];
    if (!repeat || segment.weights_size() == 0) {
      of_chain += segment.steps_size();
    } else {
      for (const double weight : segment.weights()) of_chain += std::llround(std::clamp(weight, 1.0, kMostRepeats));
    }
  }
  return rows;
}

DrawArrays::DrawArrays(SpoolFile spool, std::map<int32_t, int64_t> rows, bool repeat)
    : spool_(std::move(spool)), announced_(std::move(rows)), repeat_(repeat) {
  for (const auto& [chain, count] : announced_) {
    slots_.emplace(chain, static_cast<int64_t>(slots_.size()));
    longest_ = std::max(longest_, count);
  }
}

absl::StatusOr<DrawArrays> DrawArrays::Make(const std::string& folder, std::map<int32_t, int64_t> rows, bool repeat) {
  CHAINFLEET_ASSIGN_OR_RETURN(SpoolFile spool, SpoolFile::Make(folder));
  return DrawArrays(std::move(spool), std::move(rows), repeat);
}

absl::Status DrawArrays::Plan(const std::vector<TensorView>& tensors) {
  int64_t end = 0;
  for (const TensorView& tensor : tensors) {
    Parameter& parameter =
        parameters_.emplace_back(Parameter{tensor.name, {tensor.shape.begin() + 1, tensor.shape.end()}});
    parameter.row_bytes = RowBytes(tensor);
    parameter.offset = end;
    const int64_t rows = SaturatingMultiply(static_cast<int64_t>(slots_.size()), longest_);
    end = SaturatingAdd(end, SaturatingMultiply(rows, parameter.row_bytes));
  }
  if (end <= kMostSpooledBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError("the draws are too many for one export: choose --chains, or --weighted");
}

absl::Status DrawArrays::Write(const Parameter& parameter, int64_t row, const char* data,
                               const std::vector<int64_t>& copies) {
  int64_t at = parameter.offset + row * parameter.row_bytes;
  if (!repeat_) {
    return spool_.Write(at, data, static_cast<int64_t>(copies.size()) * parameter.row_bytes);
  }
  for (const int64_t count : copies) {
    for (int64_t copy = 0; copy < count; ++copy, at += parameter.row_bytes) {
      CHAINFLEET_RETURN_IF_ERROR(spool_.Write(at, data, parameter.row_bytes));
    }
    data += parameter.row_bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> DrawArrays::CopiesOf(const std::vector<Draw>& draws) const {
  std::vector<int64_t> copies(draws.size(), 1);
  for (size_t i = 0; repeat_ && i < draws.size(); ++i) {
    const double weight = draws[i].weight;
    if (weight < 1 || weight > kMostRepeats || weight != std::floor(weight)) {
      return absl::FailedPreconditionError(
          absl::StrCat("a draw has the weight ", weight, ", which is no number of repeats: export with --weighted"));
    }
    copies[i] = static_cast<int64_t>(weight);
  }
  return copies;
}

absl::Status DrawArrays::Add(const CheckedSegment& segment) {
  const SegmentContent& content = segment.content;
  const int32_t chain = content.chain.index;
  CHAINFLEET_ASSIGN_OR_RETURN(Safetensors file, ParseSafetensors(segment.bytes));
  std::erase_if(file.tensors, [](const TensorView& t) { return t.name == kSteps || t.name == kWeights; });
  if (parameters_.empty()) CHAINFLEET_RETURN_IF_ERROR(Plan(file.tensors));
  const auto same = [](const Parameter& p, const TensorView& t) {
    return p.name == t.name && p.row_bytes == RowBytes(t);
  };
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<int64_t> copies, CopiesOf(content.draws));
  const int64_t row = done_[chain], rows = std::accumulate(copies.begin(), copies.end(), int64_t{0});
  const auto announced = announced_.find(chain);
  if (announced == announced_.end() || row + rows > announced->second ||
      !std::equal(parameters_.begin(), parameters_.end(), file.tensors.begin(), file.tensors.end(), same)) {
    return absl::DataLossError(absl::StrCat("chain ", chain, " has other draws than its records say"));
  }
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const int64_t first = slots_.at(chain) * longest_ + row;
    CHAINFLEET_RETURN_IF_ERROR(Write(parameters_[p], first, file.tensors[p].data, copies));
  }
  Rows& columns = columns_[chain];
  for (size_t i = 0; i < copies.size(); ++i) {
    columns.steps.insert(columns.steps.end(), static_cast<size_t>(copies[i]), content.draws[i].step);
    if (!repeat_) columns.weights.push_back(content.draws[i].weight);
  }
  done_[chain] = row + rows;
  return absl::OkStatus();
}

std::vector<std::pair<std::string, std::vector<int64_t>>> DrawArrays::parameters() const {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
  for (const Parameter& parameter : parameters_) shapes.emplace_back(parameter.name, parameter.shape);
  return shapes;
}

StreamedArray DrawArrays::RowsOfChain(const Parameter& parameter, int32_t chain, int64_t first) const {
  std::vector<int64_t> shape = {done_.at(chain) - first};
  shape.insert(shape.end(), parameter.shape.begin(), parameter.shape.end());
  const int64_t offset = parameter.offset + (slots_.at(chain) * longest_ + first) * parameter.row_bytes;
  return {parameter.name,
          ArrayType::kFloat32,
          std::move(shape),
          {},
          [spool = spool_, offset](int64_t at, char* to, int64_t count) { return spool.Read(offset + at, to, count); }};
}

StreamedArray DrawArrays::Stack(const Parameter& parameter, int64_t rows, bool newest) const {
  std::vector<std::string> dimensions = {"chain", "draw"};
  const std::string own = parameter.name.substr(parameter.name.find('/') + 1);
  for (size_t axis = 0; axis < parameter.shape.size(); ++axis) dimensions.push_back(absl::StrCat(own, "_dim_", axis));
  std::vector<StreamedArray> chains;
  for (const auto& [chain, count] : done_) {
    chains.push_back(RowsOfChain(parameter, chain, newest ? count - rows : 0));
  }
  return StackChains(std::move(chains), rows, std::move(dimensions));
}

std::vector<StreamedArray> DrawArrays::Stacked() const {
  std::vector<int32_t> chains;
  std::vector<int64_t> draws;
  std::vector<std::vector<int64_t>> steps;
  std::vector<std::vector<double>> weights;
  for (const auto& [chain, count] : done_) {
    chains.push_back(chain);
    draws.push_back(count);
    steps.push_back(columns_.at(chain).steps);
    weights.push_back(columns_.at(chain).weights);
  }
  const int64_t longest = draws.empty() ? 0 : *std::ranges::max_element(draws);
  std::vector<StreamedArray> arrays;
  for (const Parameter& parameter : parameters_) arrays.push_back(Stack(parameter, longest, false));
  arrays.push_back(Streamed("chain", Column(chains, ArrayType::kInt32), {"chain"}));
  arrays.push_back(Streamed("draws", Column(draws, ArrayType::kInt64), {"chain"}));
  arrays.push_back(Streamed("step", Padded<int64_t>(steps, longest, ArrayType::kInt64, -1), {"chain", "draw"}));
  if (!repeat_)
    arrays.push_back(
        Streamed("weight", Padded<double>(weights, longest, ArrayType::kFloat64, std::nan("")), {"chain", "draw"}));
  return arrays;
}

std::vector<StreamedArray> DrawArrays::Newest(DrawKind kind, int64_t rows) const {
  const std::string prefix = ToString(kind) + "/";
  std::vector<StreamedArray> arrays;
  for (const Parameter& parameter : parameters_) {
    if (!parameter.name.starts_with(prefix)) continue;
    arrays.push_back(Stack(parameter, rows, true));
    arrays.back().name.erase(0, prefix.size());
  }
  return arrays;
}

std::vector<StreamedArray> DrawArrays::OfChain(int32_t chain) const {
  std::vector<StreamedArray> arrays;
  for (const Parameter& parameter : parameters_) arrays.push_back(RowsOfChain(parameter, chain, 0));
  const Rows& columns = columns_.at(chain);
  arrays.push_back(Streamed("steps", Column(columns.steps, ArrayType::kInt64)));
  if (!repeat_) arrays.push_back(Streamed("weights", Column(columns.weights, ArrayType::kFloat64)));
  return arrays;
}

}  // namespace chainfleet
