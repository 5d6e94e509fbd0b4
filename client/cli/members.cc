#include "client/cli/members.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/content_limits.h"
#include "core/base/file_system.h"
#include "core/formats/exported_program.h"
#include "core/store/draw_codec/weights_file.h"

namespace chainfleet {
namespace {

constexpr size_t kMostFiles = 4096;

absl::StatusOr<ByteSource> Open(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat("cannot be read: ", error.message()));
  return ByteSource::InFile(path, static_cast<int64_t>(size));
}

// Replaces each folder by the chains in it, in their order.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::vector<std::string>& given) {
  std::vector<std::string> files;
  for (const std::string& path : given) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const auto first = static_cast<int64_t>(files.size());
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
    if (error) return absl::FailedPreconditionError(absl::StrCat(path, " cannot be read: ", error.message()));
    if (first == static_cast<int64_t>(files.size())) {
      return absl::InvalidArgumentError(path +
                                        " has no .safetensors files: name a folder that `chainfleet export "
                                        "--format safetensors` wrote");
    }
    std::sort(files.begin() + first, files.end());
  }
  if (files.size() <= kMostFiles) return files;
  return absl::InvalidArgumentError(
      absl::StrCat(files.size(), " files are more than ", kMostFiles, ": import them as several jobs"));
}

// A buffer that is part of the network is the same for all members.
absl::Status CheckBuffers(const Safetensors& state, const ExportedProgram& network, const ByteSource& model) {
  std::vector<std::string> values(network.tensors.size());
  CHAINFLEET_RETURN_IF_ERROR(ReadExportedTensors(model, network, [&](const ExportedTensor& tensor) {
    std::string& here = values[static_cast<size_t>(&tensor - network.tensors.data())];
    here.resize(static_cast<size_t>(NumValues(tensor.shape) * SizeOf(tensor.type)));
    return std::span<char>(here);
  }));
  for (size_t i = 0; i < values.size(); ++i) {
    const ExportedTensor& own = network.tensors[i];
    const bool kept = std::ranges::count(network.statistics, static_cast<int32_t>(i)) > 0;
    const TensorView* const other = state.Find(own.name);
    if (own.is_parameter || kept || other == nullptr || other->type < TensorType::kFloat16) continue;
    if (std::string_view(other->data, static_cast<size_t>(other->size_bytes)) == values[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "has another ", own.name,
        " than the .pt2 file, whose buffers are those of all networks: export the network in ",
        "training mode (`module.train()`), so that each draw keeps its statistics, or import each network as a job"));
  }
  return absl::OkStatus();
}

// Returns the tensors of numbers of several state_dicts as draws.
absl::StatusOr<std::string> Stack(const std::vector<Safetensors>& states) {
  std::vector<TensorView> tensors = states.front().tensors;
  std::erase_if(tensors, [](const TensorView& tensor) { return tensor.type < TensorType::kFloat16; });
  std::vector<std::string> stacks(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorView& tensor = tensors[i];
    for (const Safetensors& state : states) {
      const TensorView* const other = state.Find(tensor.name);
      if (other == nullptr || other->type != tensor.type || other->shape != tensor.shape) {
        return absl::InvalidArgumentError(absl::StrCat("state_dicts have ", tensor.name, " of different shapes or ",
                                                       "types, or lack it: import networks of one kind"));
      }
      stacks[i].append(other->data, static_cast<size_t>(other->size_bytes));
    }
    tensor.name.insert(0, ToString(DrawKind::kTheta) + "/");
    tensor.shape.insert(tensor.shape.begin(), std::ssize(states));
    tensor.data = stacks[i].data();
    tensor.size_bytes = std::ssize(stacks[i]);
  }
  return WriteSafetensors(tensors, {});
}

class Reader {
 public:
  Reader(ByteSource model, ExportedProgram network) : model_(std::move(model)), network_(std::move(network)) {
    members_.has_statistics = !network_.statistics.empty();
  }

  absl::Status Add(const std::string& path) {
    CHAINFLEET_ASSIGN_OR_RETURN(const ByteSource file, Open(path));
    CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors header, ReadWeightsHeader(file));
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t draws, NumDrawsIn(SignaturesOf(header)));
    const bool anchor = std::ranges::any_of(
        header.tensors, [](const TensorView& tensor) { return tensor.name.starts_with("theta_a/"); });
    if (draws == 0 && anchor) return absl::InvalidArgumentError("has draws of theta_a only: export a job with theta");
    if (!members_.chains.empty() && anchor != members_.has_anchor) {
      return absl::InvalidArgumentError("has other kinds of draws than the files before: import them as two jobs");
    }
    members_.has_anchor = anchor;
    members_.num_draws = std::max(members_.num_draws, draws);
    has_draws_ |= draws > 0;
    members_.chains.push_back({.paths = {path}});
    return draws > 0 ? absl::OkStatus() : AddState(path, header);
  }

  // Puts state_dicts together until there are `most` chains.
  absl::StatusOr<ImportedMembers> Take(size_t most) {
    const size_t given = members_.chains.size();
    if (given <= most) return std::move(members_);
    if (has_draws_) {
      return absl::InvalidArgumentError(absl::StrCat("these are ", given,
                                                     " chains, and a job of this name has at most ", most,
                                                     ": give a shorter NAME, or import several jobs"));
    }
    const size_t of_chain = (given + most - 1) / most;
    std::vector<MemberChain> files;
    files.swap(members_.chains);
    for (size_t i = 0; i < given; ++i) {
      if (i % of_chain == 0) members_.chains.push_back({.paths = {}, .stacked = true});
      members_.chains.back().paths.push_back(std::move(files[i].paths.front()));
    }
    members_.num_draws = static_cast<int64_t>(of_chain);
    return std::move(members_);
  }

 private:
  absl::Status AddState(const std::string& path, const Safetensors& header) {
    const auto is_buffer = [&](const ExportedTensor& tensor) {
      return !tensor.is_parameter && header.Find(tensor.name) != nullptr;
    };
    if (!std::ranges::any_of(network_.tensors, is_buffer)) return absl::OkStatus();
    CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, RealFileSystem()->Read(path));
    CHAINFLEET_ASSIGN_OR_RETURN(const Safetensors state, ReadWeights(bytes));
    CHAINFLEET_RETURN_IF_ERROR(CheckBuffers(state, network_, model_));
    members_.chains.back().stacked = members_.has_statistics;
    return absl::OkStatus();
  }

  const ByteSource model_;
  const ExportedProgram network_;
  ImportedMembers members_;
  bool has_draws_ = false;
};

}  // namespace

size_t MostChains(const std::string& name) {
  constexpr size_t kSuffix = sizeof("-255") - 1;
  return std::clamp<size_t>(limits::kMaxCharactersOfWeights / (name.size() + kSuffix), 1, limits::kMaxFilesOfWeights);
}

absl::StatusOr<ImportedMembers> ReadMembers(const std::string& model, const std::vector<std::string>& weights,
                                            size_t most_chains) {
  absl::StatusOr<ByteSource> file = Open(model);
  if (!file.ok()) return Annotate(file.status(), model);
  absl::StatusOr<ExportedProgram> network = ReadExportedProgram(*file);
  if (!network.ok()) return Annotate(network.status(), model);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(weights));
  Reader reader(*std::move(file), *std::move(network));
  for (const std::string& path : files) {
    if (const absl::Status added = reader.Add(path); !added.ok()) return Annotate(added, path);
  }
  return reader.Take(most_chains);
}

absl::StatusOr<FileToSend> FileOf(const MemberChain& chain) {
  if (!chain.stacked) return FileToSend{chain.paths.front()};
  std::vector<std::string> files;  // borrowed by `states`
  std::vector<Safetensors> states;
  files.reserve(chain.paths.size());
  for (const std::string& path : chain.paths) {
    CHAINFLEET_ASSIGN_OR_RETURN(files.emplace_back(), RealFileSystem()->Read(path));
    CHAINFLEET_ASSIGN_OR_RETURN(states.emplace_back(), ReadWeights(files.back()));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(std::string draws, Stack(states));
  return FileToSend{chain.paths.front(), std::move(draws)};
}

}  // namespace chainfleet
