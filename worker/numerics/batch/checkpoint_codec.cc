#include "worker/numerics/batch/checkpoint_codec.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "core/base/ids.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {
namespace {

constexpr char kFormat[] = "chainfleet-resume-point";
constexpr char kNumbers[] = "numbers";
constexpr char kReport[] = "report";

absl::StatusOr<int64_t> Number(const Safetensors& file, const std::string& key) {
  const auto entry = file.metadata.find(key);
  int64_t value = -1;
  if (entry != file.metadata.end()) {
    const std::string& text = entry->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) value = -1;
  }
  if (value < 0) return absl::InvalidArgumentError("the resume point's " + key + " is missing or no number");
  return value;
}

absl::Status CheckVersion(const Safetensors& file) {
  const auto format = file.metadata.find("format");
  if (format == file.metadata.end() || format->second != kFormat) {
    return absl::InvalidArgumentError("the bytes are no resume point");
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t version, Number(file, "version"));
  if (version >= kOldestResumePointVersion && version <= kResumePointVersion) return absl::OkStatus();
  return absl::FailedPreconditionError("resume point of format " + std::to_string(version) + ", this build reads " +
                                       std::to_string(kOldestResumePointVersion) + " to " +
                                       std::to_string(kResumePointVersion) + ": run a worker of its version");
}

// "step=0 curvature=3.5". Readers skip fields that they do not know and values that are not numbers.
std::string WriteReport(const RunReport& report) {
  std::string text;
  const auto write = [&](const char* name, auto value) {
    char digits[32];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
    text += (text.empty() ? "" : " ") + std::string(name) + "=" + std::string(digits, end);
  };
  RunReport::Fields(report, [&](const char* name, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      write(name, value);
    } else if (value) {
      write(name, *value);
    }
  });
  return text;
}

RunReport ReadReport(const std::string& text) {
  RunReport report;
  const std::string fields = " " + text;
  RunReport::Fields(report, [&](const char* name, auto& value) {
    const std::string start = " " + std::string(name) + "=";
    const size_t at = fields.find(start);
    if (at == std::string::npos) return;
    const char *first = fields.data() + at + start.size(), *last = fields.data() + fields.size();
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      std::from_chars(first, last, value);
    } else if (double number; std::from_chars(first, last, number).ec == std::errc()) {
      value = number;
    }
  });
  return report;
}

}  // namespace

std::string EncodeCheckpoint(const Checkpoint& checkpoint) {
  std::vector<TensorView> tensors;
  for (size_t i = 0; i < checkpoint.arenas.size(); ++i) {
    const std::vector<float>& arena = checkpoint.arenas[i];
    const int64_t size = static_cast<int64_t>(arena.size());
    tensors.push_back({checkpoint.names[i],
                       TensorType::kFloat32,
                       {size},
                       reinterpret_cast<const char*>(arena.data()),
                       size * static_cast<int64_t>(sizeof(float))});
  }
  const auto count = static_cast<int64_t>(checkpoint.numbers.size());
  tensors.push_back({kNumbers,
                     TensorType::kFloat64,
                     {count},
                     reinterpret_cast<const char*>(checkpoint.numbers.data()),
                     count * static_cast<int64_t>(sizeof(double))});
  std::map<std::string, std::string> metadata = {{"format", kFormat},
                                                 {"version", std::to_string(kResumePointVersion)},
                                                 {"job", checkpoint.job},
                                                 {"chain", std::to_string(checkpoint.chain)},
                                                 {"step", std::to_string(checkpoint.step)}};
  if (checkpoint.report) metadata[kReport] = WriteReport(*checkpoint.report);
  return WriteSafetensors(tensors, metadata);
}

absl::StatusOr<Checkpoint> DecodeCheckpoint(const std::string& bytes) {
  CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors file, ParseSafetensors(bytes));
  CHAINFLEET_RETURN_IF_ERROR(CheckVersion(file));
  Checkpoint checkpoint;
  CHAINFLEET_ASSIGN_OR_RETURN(checkpoint.step, Number(file, "step"));
  CHAINFLEET_ASSIGN_OR_RETURN(const int64_t chain, Number(file, "chain"));
  if (chain > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("the resume point's chain is no chain: " + std::to_string(chain));
  }
  checkpoint.chain = static_cast<int32_t>(chain);
  const auto job = file.metadata.find("job");
  if (job != file.metadata.end()) checkpoint.job = job->second;
  const auto report = file.metadata.find(kReport);
  if (report != file.metadata.end()) checkpoint.report = ReadReport(report->second);
  for (const TensorView& tensor : file.tensors) {
    if (tensor.name == kNumbers && tensor.type == TensorType::kFloat64 && tensor.shape.size() == 1) {
      checkpoint.numbers.resize(tensor.shape[0]);
      if (tensor.size_bytes > 0) std::memcpy(checkpoint.numbers.data(), tensor.data, tensor.size_bytes);
      continue;
    }
    if (tensor.type != TensorType::kFloat32 || tensor.shape.size() != 1) {
      return absl::InvalidArgumentError("tensor " + tensor.name + " of the resume point is not float32 [D]");
    }
    checkpoint.names.push_back(tensor.name);
    std::vector<float>& arena = checkpoint.arenas.emplace_back(tensor.shape[0]);
    if (!arena.empty()) std::memcpy(arena.data(), tensor.data, tensor.size_bytes);
  }
  return checkpoint;
}

absl::Status CheckFits(const Checkpoint& checkpoint, const std::string& job, int32_t chain,
                       const std::vector<std::string>& names, int64_t num_parameters) {
  const std::string wanted = ToString(ChainId{job, chain});
  const ChainId found{checkpoint.job, checkpoint.chain};
  if (found != ChainId{job, chain}) {
    return absl::InvalidArgumentError("resume point of chain " + ToString(found) + " given to chain " + wanted);
  }
  bool fits = checkpoint.names == names;
  for (const auto& arena : checkpoint.arenas) fits &= static_cast<int64_t>(arena.size()) == num_parameters;
  return fits ? absl::OkStatus() : HoldsAnotherState(wanted);
}

absl::Status HoldsAnotherState(const std::string& chain) {
  return absl::InvalidArgumentError("the resume point of chain " + chain +
                                    " holds another sampler's state or another model's parameters");
}

}  // namespace chainfleet
