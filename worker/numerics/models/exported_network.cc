#include "worker/numerics/models/exported_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "core/base/rng_key.h"
#include "core/formats/exported_program.h"
#include "worker/numerics/models/row_positions.h"
#include "worker/numerics/models/vmap_scope.h"
#include "worker/numerics/tensors/single_threaded.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

constexpr char kPath[] = "model.exported";

// Rows of a pass (docs/explanation/performance.md has the measurements). A request of one row costs a whole pass, and a
// convolution gains little from more rows. The later sizes are for networks with another axis of the first size, which
// hides where the rows are.
using PassSizes = std::array<int64_t, 3>;
constexpr PassSizes kRows = {16, 20, 28}, kRowsOfConvolutions = {8, 12, 20};
constexpr int64_t kLeastRows = 4;  // fewer rows in a pass run alone

// Trials of positions, and the number of parameters beyond which there are fewer.
constexpr uint64_t kTrials = 8, kTrialsOfLarge = 3;
constexpr int64_t kLarge = int64_t{1} << 20;

absl::Status CheckInputs(const ExportedProgram& program, const StoredNetworkUse& use) {
  std::vector<TensorSignature> inputs;
  for (const ExportedSignature& input : program.inputs) inputs.push_back({"", NameOf(input.type), input.shape});
  const std::string why = WhyUnread(inputs, use.input_shape);
  return why.empty() ? absl::OkStatus() : use.Refused(why);
}

bool HasConvolutions(const ExportedProgram& program) {
  return std::ranges::any_of(program.nodes, [](const auto& node) { return node.op.starts_with("aten::conv"); });
}

// A node whose weight [outputs, inputs, kernel...] multiplies its inputs.
bool MultipliesInputs(const ExportedNode& node) {
  const bool known =
      node.op == "aten::linear" || node.op == "aten::conv1d" || node.op == "aten::conv2d" || node.op == "aten::conv3d";
  return known && std::ranges::none_of(node.arguments, [](const auto& argument) {
           return argument.first == "groups" && argument.second != ExportedArgument(int64_t{1});
         });
}

// Numbers in +-1 that depend on `key` and position only, [size] on the CPU.
at::Tensor Uniform(RngKey key, int64_t size) {
  at::Tensor values = at::empty({size}, at::kFloat);
  auto* const out = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < size; i += 4) {
    const PhiloxBlock block = RandomBlock(key, RngStream::kInit, 0, static_cast<uint32_t>(i / 4));
    for (int64_t w = 0; w < std::min<int64_t>(4, size - i); ++w) out[i + w] = 2 * UniformFloat(block.word[w]) - 1;
  }
  return values;
}

// Parameters under which outputs of a layer are about as large as its inputs, [1, shape...] each, views of one draw.
std::vector<at::Tensor> SomeDraw(const NetworkShape& network, RngKey key) {
  std::vector<at::Tensor> tensors = TensorsOfDraw(network.parameters, Uniform(key, NumParameters(network.parameters)));
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (const int64_t fan_in = network.parameters[k].fan_in)
      tensors[k].mul_(std::sqrt(6 / static_cast<double>(fan_in)));
  }
  return tensors;
}

// [chains, rows, input_shape...]
at::Tensor SomeRows(const InputColumns& inputs, const std::vector<int64_t>& input_shape, int64_t chains, int64_t rows) {
  std::vector<int64_t> shape = {chains, rows};
  shape.insert(shape.end(), input_shape.begin(), input_shape.end());
  return inputs.Possible(Uniform(RngKey{0}, NumValues(shape)).view(shape));
}

// Values of the largest tensor that a node computes for one row; 0 if the network does not run.
int64_t LargestOutput(const ExportedSteps& steps, std::vector<at::Tensor> values, const std::vector<at::Tensor>& row) {
  const c10::AutoGradMode autograd(false);
  values.insert(values.end(), row.begin(), row.end());
  int64_t largest = 0;
  try {
    steps.Run(values, {}, [&](const at::Tensor& computed) { largest = std::max(largest, computed.numel()); });
  } catch (const c10::Error&) {
    return 0;
  }
  return largest;
}

std::vector<at::Tensor> OfChain(const std::vector<at::Tensor>& tensors, int64_t chain) {
  std::vector<at::Tensor> alone;
  for (const at::Tensor& tensor : tensors) alone.push_back(tensor.narrow(0, chain, 1));
  return alone;
}

double LargestOf(const at::Tensor& values) { return values.defined() ? values.abs().max().item<double>() : 0; }

// Up to the rounding of a GPU. Some gradients are nothing but rounding, such as that of a bias before batch norm.
bool Agree(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& wanted) {
  double largest = 0;
  for (const at::Tensor& tensor : wanted) largest = std::max(largest, LargestOf(tensor));
  return std::ranges::equal(found, wanted, [&](const at::Tensor& a, const at::Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    return a.sizes() == b.sizes() && LargestOf(a - b) <= 0.01 * LargestOf(b) + 0.001 * largest;
  });
}

}  // namespace

absl::Status CheckDroppedInputs(const ExportedProgram& program, const std::vector<std::string>& sample) {
  absl::Status checked;
  for (const ExportedNode& node : program.nodes) {
    const auto use = [&](const ExportedValue& value) {
      if (value.id >= program.num_tensors()) return;
      const ExportedTensor& tensor = program.tensors[static_cast<size_t>(value.id)];
      if (!tensor.is_parameter || tensor.shape.size() < 2 || !IsSampled(tensor.name, sample)) return;
      checked.Update(InvalidFields(
          {{"sampler.mc_dropout", absl::StrCat("drops inputs of linear layers and ungrouped convolutions, node ",
                                               node.name, " (", node.op, ") uses ", tensor.name,
                                               " in another way: sample other parameters, or take another sampler")}}));
    };
    for (const auto& [name, argument] : node.arguments) {
      const auto* const value = std::get_if<ExportedValue>(&argument);
      if (value != nullptr && !(name == "weight" && MultipliesInputs(node))) use(*value);
      const auto* const list = std::get_if<std::vector<std::optional<ExportedValue>>>(&argument);
      for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
        if ((*list)[i]) use(*(*list)[i]);
      }
    }
  }
  return checked;
}

ExportedNetwork::ExportedNetwork(NetworkShape shape, InputColumns inputs, ExportedSteps steps,
                                 std::vector<at::Tensor> tensors, std::vector<size_t> parameters,
                                 std::vector<at::Tensor> statistics, bool has_convolutions)
    : StoredNetwork(std::move(shape)),
      inputs_(std::move(inputs)),
      steps_(std::move(steps)),
      tensors_(std::move(tensors)),
      parameters_(std::move(parameters)),
      statistics_(std::move(statistics)),
      has_convolutions_(has_convolutions) {}

absl::StatusOr<std::shared_ptr<const StoredNetwork>> ExportedNetwork::Load(const ExportedModel& file,
                                                                           const std::vector<int64_t>& input_shape,
                                                                           int64_t num_outputs, at::Device device,
                                                                           const std::vector<ParameterShape>& more,
                                                                           const std::vector<std::string>& sample) {
  const StoredNetworkUse use{kPath, input_shape, num_outputs, device, more};
  const ExportedProgram& program = file.program;
  CHAINFLEET_RETURN_IF_ERROR(CheckInputs(program, use));
  absl::StatusOr<ExportedSteps> steps = ExportedSteps::Compile(program, device);
  if (!steps.ok()) return use.Refused(std::string(steps.status().message()));

  std::vector<at::Tensor> tensors, values;
  std::vector<std::string> names;
  std::vector<size_t> parameters;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const ExportedTensor& tensor = program.tensors[i];
    tensors.push_back(file.tensors[i].to(device));
    if (!tensor.is_parameter || !IsSampled(tensor.name, sample)) continue;
    names.push_back(tensor.name);
    values.push_back(tensors.back());
    parameters.push_back(i);
  }
  CHAINFLEET_ASSIGN_OR_RETURN(NetworkShape shape, ShapeOfStored(names, values, use));
  const InputColumns inputs(program.inputs);
  std::vector<at::Tensor> statistics;
  int64_t offset = NumParameters(shape.parameters);
  for (const int32_t i : program.statistics) {
    const ExportedTensor& tensor = program.tensors[static_cast<size_t>(i)];
    shape.statistics.push_back({.name = tensor.name, .shape = tensor.shape, .offset = offset});
    offset += NumValues(tensor.shape);
    statistics.push_back(tensors[static_cast<size_t>(i)].unsqueeze(0));
  }
  const auto some_inputs = [&](int64_t rows) {
    return inputs.Split(SomeRows(inputs, input_shape, 1, rows).squeeze(0).to(device));
  };
  shape.largest_output = LargestOutput(*steps, tensors, some_inputs(1));
  std::shared_ptr<ExportedNetwork> network(new ExportedNetwork(std::move(shape), inputs, *std::move(steps), tensors,
                                                               std::move(parameters), std::move(statistics),
                                                               HasConvolutions(program)));
  for (at::Tensor& value : values) value = value.unsqueeze(0);
  const auto forward = [&](const at::Tensor& x) {
    const ForwardMode mode{.statistics = &network->statistics_};
    return network->Logits(values, inputs.Possible(x).unsqueeze(0), mode).squeeze(0);
  };
  CHAINFLEET_RETURN_IF_ERROR(TryForward(forward, tensors, use));
  if (!sample.empty()) {
    std::vector<std::vector<at::Tensor>> trials;
    for (const uint64_t key : {1, 2}) {
      std::vector<at::Tensor> draw = SomeDraw(network->shape(), {key});
      for (at::Tensor& tensor : draw) tensor = tensor.to(device);
      trials.push_back(network->Tensors(draw));
    }
    network->trunk_ = FrozenTrunk::Find(network->steps_, trials, network->parameters_, some_inputs);
  }
  return network;
}

std::vector<at::Tensor> ExportedNetwork::Tensors(const std::vector<at::Tensor>& parameters) const {
  std::vector<at::Tensor> tensors = tensors_;
  for (size_t k = 0; k < parameters_.size(); ++k) tensors[parameters_[k]] = parameters[k].squeeze(0);
  return tensors;
}

std::vector<at::Tensor> ExportedNetwork::Values(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const {
  std::vector<at::Tensor> values = Tensors(parameters);
  std::ranges::move(inputs_.Split(x.squeeze(0)), std::back_inserter(values));
  return values;
}

std::vector<at::Tensor> ExportedNetwork::Features(const at::Tensor& x) const {
  const c10::AutoGradMode autograd(false);
  return trunk_ == nullptr ? StoredNetwork::Features(x) : trunk_->Features(tensors_, inputs_.Split(x));
}

at::Tensor ExportedNetwork::LogitsOf(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& features,
                                     const ForwardMode& mode) const {
  if (trunk_ == nullptr) return StoredNetwork::LogitsOf(parameters, features, mode);
  const int64_t chains = features.front().size(0);
  const auto of_chain = [&](int64_t chain, const ForwardMode& alone) {
    std::vector<at::Tensor> own;
    for (const at::Tensor& feature : features) own.push_back(feature.select(0, chain));
    return trunk_->Outputs(Tensors(OfChain(parameters, chain)), own, alone).unsqueeze(0);
  };
  if (chains == 1) return of_chain(0, mode);
  const auto together = [&] {
    const VmapScope scope(chains);
    std::vector<at::Tensor> tensors = tensors_, own;
    for (size_t k = 0; k != parameters_.size(); ++k) tensors[parameters_[k]] = scope.Wrapped(parameters[k]);
    for (const at::Tensor& feature : features) own.push_back(scope.Wrapped(feature.clone()));
    return scope.Unwrapped(trunk_->Outputs(tensors, own, mode, nullptr, &scope));
  };
  return TogetherOrApart(chains, mode, together, of_chain);
}

at::Tensor ExportedNetwork::Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                                   const ForwardMode& mode) const {
  if (x.size(0) == 1) return steps_.Run(Values(parameters, x), mode).unsqueeze(0);
  return TogetherOrApart(
      x.size(0), mode, [&] { return LogitsTogether(parameters, x, mode); },
      [&](int64_t chain, const ForwardMode& alone) {
        return steps_.Run(Values(OfChain(parameters, chain), x.narrow(0, chain, 1)), alone).unsqueeze(0);
      });
}

at::Tensor ExportedNetwork::TogetherOrApart(int64_t chains, const ForwardMode& mode,
                                            const std::function<at::Tensor()>& together,
                                            const OutputsOfChain& of_chain) const {
  if (mode.statistics == nullptr && mode.batch_statistics == nullptr && TakesChains()) {
    try {
      return together();
    } catch (const c10::Error&) {
      if (absl::IsResourceExhausted(StatusOfException("several chains"))) throw;  // fewer chains may fit
      takes_chains_ = false;  // an error that a chain alone has too is thrown below
    }
  }
  return Apart(chains, mode, of_chain);
}

// Concatenates [1, n, K] of each chain.
at::Tensor ExportedNetwork::Apart(int64_t chains, const ForwardMode& mode, const OutputsOfChain& of_chain) {
  std::vector<at::Tensor> of_chains;
  std::vector<std::vector<at::Tensor>> seen(mode.batch_statistics == nullptr ? 0 : chains);
  for (int64_t chain = 0; chain < chains; ++chain) {
    ForwardMode alone;
    if (mode.dropout != nullptr) alone.dropout = mode.dropout + chain;
    if (!seen.empty()) alone.batch_statistics = &seen[static_cast<size_t>(chain)];
    std::vector<at::Tensor> statistics;
    if (mode.statistics != nullptr) {
      statistics = OfChain(*mode.statistics, chain);
      alone.statistics = &statistics;
    }
    of_chains.push_back(of_chain(chain, alone));
  }
  for (size_t i = 0; !seen.empty() && i < seen.front().size(); ++i) {
    std::vector<at::Tensor> of_all;
    for (const std::vector<at::Tensor>& of_one : seen) of_all.push_back(of_one[i]);
    mode.batch_statistics->push_back(at::cat(of_all));
  }
  return at::cat(of_chains);
}

at::Tensor ExportedNetwork::LogitsTogether(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                                           const ForwardMode& mode) const {
  std::vector<at::Tensor> values = tensors_;
  std::vector<bool> of_chains(values.size(), false);
  for (size_t k = 0; k != parameters_.size(); ++k) {
    values[parameters_[k]] = parameters[k];
    of_chains[parameters_[k]] = true;
  }
  std::ranges::move(inputs_.Split(x), std::back_inserter(values));
  of_chains.resize(values.size(), true);
  return steps_.RunTogether(x.size(0), values, of_chains, mode);
}

bool ExportedNetwork::TakesChains() const {
  std::call_once(tried_chains_, [this] { takes_chains_ = AgreesTogether(); });
  return takes_chains_;
}

bool ExportedNetwork::AgreesTogether() const {
  const c10::AutoGradMode autograd(true);
  const std::vector<at::Tensor> first = SomeDraw(shape(), RngKey{1}), second = SomeDraw(shape(), RngKey{2});
  std::vector<at::Tensor> leaves;
  for (size_t k = 0; k < first.size(); ++k) {
    leaves.push_back(at::cat({first[k], second[k]}).to(tensors_.front().device()).requires_grad_(true));
  }
  const at::Tensor x = SomeRows(inputs_, shape().input_shape, 2, 3).to(tensors_.front().device());
  // Outputs, then gradients.
  const auto results = [&](const at::Tensor& outputs) {
    outputs.square().sum().backward();
    std::vector<at::Tensor> all = {outputs.detach()};
    for (at::Tensor& leaf : leaves) all.push_back(std::exchange(leaf.mutable_grad(), at::Tensor()));
    return all;
  };
  try {
    const std::vector<at::Tensor> together = results(LogitsTogether(leaves, x, {}));
    return Agree(together, results(Apart(2, {}, [&](int64_t chain, const ForwardMode& alone) {
                   return steps_.Run(Values(OfChain(leaves, chain), x.narrow(0, chain, 1)), alone).unsqueeze(0);
                 })));
  } catch (const std::exception&) {
    return false;  // an operator without a rule for batches, most often
  }
}

RowsOfPass ExportedNetwork::PassOfRows() const {
  std::call_once(tried_rows_, [this] {
    RunSingleThreaded(1, [this](int64_t) {
      for (const int64_t size : has_convolutions_ ? kRowsOfConvolutions : kRows) {
        if (pass_of_rows_.size == 1) pass_of_rows_ = TryPass(size);
      }
    });
  });
  return pass_of_rows_;
}

// Runs rows that are all alike, and compares whatever the nodes compute at each position. Numbers do not decide which
// kernels run; several draws make it unlikely that two orders of a sum round alike. Alignment repeats after a few rows.
RowsOfPass ExportedNetwork::TryPass(int64_t size) const {
  const c10::AutoGradMode autograd(false);
  int64_t step = 1;
  const auto useful = [&] { return size / step >= kLeastRows; };
  const auto see = [&](const at::Tensor& values) {
    while (useful() && !SameAtPositions(values, size, step)) step *= 2;
  };
  std::vector<int64_t> repeated(shape().input_shape.size() + 2, -1);
  repeated[1] = size;
  const at::Tensor x = SomeRows(inputs_, shape().input_shape, 1, 1).expand(repeated).contiguous();
  const ForwardMode mode{.statistics = &statistics_};
  const uint64_t trials = NumParameters(shape().parameters) > kLarge ? kTrialsOfLarge : kTrials;
  try {
    for (uint64_t trial = 1; useful() && trial <= trials; ++trial) {
      const std::vector<at::Tensor> draw = SomeDraw(shape(), {trial});
      if (trunk_ == nullptr) {
        steps_.Run(Values(draw, x.clone()), mode, see);
      } else {
        trunk_->Outputs(Tensors(draw), trunk_->Features(tensors_, inputs_.Split(x.squeeze(0).clone()), see), mode, see);
      }
    }
  } catch (const std::exception&) {
    return {};  // one row alone was tried when the file was loaded
  }
  return useful() ? RowsOfPass{size, step} : RowsOfPass{};
}

}  // namespace chainfleet
