#include "worker/numerics/models/frozen_trunk.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <optional>

namespace chainfleet {
namespace {

// Numbers of rows of the trials: none is a multiple of another.
constexpr std::array<int64_t, 3> kRowsOfTrials = {2, 3, 5};

std::vector<at::Tensor> With(std::vector<at::Tensor> tensors, const std::vector<at::Tensor>& inputs) {
  tensors.insert(tensors.end(), inputs.begin(), inputs.end());
  return tensors;
}

bool ShareMemory(const std::vector<at::Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (tensors[i].is_alias_of(tensors[j])) return true;
    }
  }
  return false;
}

}  // namespace

std::unique_ptr<const FrozenTrunk> FrozenTrunk::Find(const ExportedSteps& steps,
                                                     const std::vector<std::vector<at::Tensor>>& trials,
                                                     const std::vector<size_t>& sampled,
                                                     const SomeInputs& some_inputs) {
  std::unique_ptr<FrozenTrunk> trunk(new FrozenTrunk(steps));
  trunk->cut_ = steps.CutBefore(sampled);
  if (trunk->cut_.steps == 0) return nullptr;
  const c10::AutoGradMode autograd(false);
  const auto agrees = [&](const std::vector<at::Tensor>& tensors) {
    return trunk->Agrees(tensors, some_inputs(kRowsOfTrials.back()));
  };
  try {
    if (!trunk->Learn(trials.front(), some_inputs) || !std::ranges::all_of(trials, agrees)) return nullptr;
  } catch (const c10::Error&) {
    return nullptr;
  }
  return trunk;
}

bool FrozenTrunk::Learn(const std::vector<at::Tensor>& tensors, const SomeInputs& some_inputs) {
  std::array<CutValues, kRowsOfTrials.size()> trials;
  for (size_t t = 0; t < kRowsOfTrials.size(); ++t)
    trials[t] = steps_.RunBefore(cut_, With(tensors, some_inputs(kRowsOfTrials[t])));
  for (size_t i = 0; i < cut_.tensors.size(); ++i) {
    const auto size = [&](size_t trial, int64_t axis) { return trials[trial].tensors[i].size(axis); };
    axes_.emplace_back();
    for (int64_t axis = 0; axis < trials[0].tensors[i].dim(); ++axis) {
      if (size(0, axis) == size(1, axis)) continue;
      const int64_t per_row = size(0, axis) / kRowsOfTrials[0];
      for (size_t t = 0; t < kRowsOfTrials.size(); ++t) {
        if (axes_.back() || per_row == 0 || size(t, axis) != per_row * kRowsOfTrials[t]) return false;
      }
      axes_.back() = {axis, per_row};
    }
    if (axes_.back()) continue;
    shared_.push_back(trials[0].tensors[i]);
    for (const CutValues& trial : trials) {
      if (!trial.tensors[i].equal(shared_.back())) return false;
    }
  }
  for (size_t i = 0; i < cut_.sizes.size(); ++i) {
    const int64_t slope = trials[1].sizes[i] - trials[0].sizes[i],
                  offset = trials[0].sizes[i] - slope * kRowsOfTrials[0];
    if (trials[2].sizes[i] != slope * kRowsOfTrials[2] + offset) return false;
    sizes_.push_back({slope, offset});
  }
  if (shared_.size() == axes_.size()) return false;
  return !cut_.written || (shared_.empty() && !ShareMemory(trials[0].tensors));
}

// Rows in another order must have their own outputs.
bool FrozenTrunk::Agrees(const std::vector<at::Tensor>& tensors, std::vector<at::Tensor> inputs) const {
  const at::Tensor order = at::tensor({3, 0, 4, 1}, at::dtype(at::kLong).device(inputs[0].device()));
  std::vector<at::Tensor> features = Features(tensors, inputs);
  for (at::Tensor& feature : features) feature = feature.index_select(0, order);
  const at::Tensor found = Outputs(tensors, features);
  for (at::Tensor& input : inputs) input = input.index_select(0, order);
  const at::Tensor wanted = steps_.Run(With(tensors, inputs));
  return found.sizes() == wanted.sizes() &&
         ((found - wanted).abs().max() <= wanted.abs().max() * 1e-3 + 1e-6).item<bool>();
}

std::vector<at::Tensor> FrozenTrunk::Features(const std::vector<at::Tensor>& tensors,
                                              const std::vector<at::Tensor>& inputs, const See& see) const {
  const CutValues at_cut = steps_.RunBefore(cut_, With(tensors, inputs), see);
  std::vector<at::Tensor> features;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!axes_[i]) continue;
    const auto [axis, per_row] = *axes_[i];
    const at::Tensor& value = at_cut.tensors[i];
    features.push_back(value.unflatten(axis, {inputs[0].size(0), per_row}).movedim(axis, 0).contiguous());
  }
  return features;
}

at::Tensor FrozenTrunk::Outputs(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& features,
                                const ForwardMode& mode, const See& see, const VmapScope* several) const {
  CutValues at_cut;
  auto feature = features.begin();
  auto shared = shared_.begin();
  for (const std::optional<RowAxis>& rows : axes_) {
    at_cut.tensors.push_back(rows ? (feature++)->movedim(0, rows->axis).flatten(rows->axis, rows->axis + 1)
                                  : *shared++);
  }
  for (const Size& size : sizes_) at_cut.sizes.push_back(size.slope * features.front().size(0) + size.offset);
  return steps_.RunAfter(cut_, tensors, at_cut, mode, see, several);
}

}  // namespace chainfleet
