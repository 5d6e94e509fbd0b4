#include "worker/numerics/models/eager_potential.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/chain_lanes.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/models/network_curvature.h"
#include "worker/numerics/models/stored_network.h"
#include "worker/numerics/models/training_rows.h"
#include "worker/numerics/potentials/batch_ids.h"
#include "worker/numerics/tensors/late_copy.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {
namespace {

constexpr int64_t kStatisticsRound = 64;  // minibatches whose statistics are kept until they are added, in order

void CopyToHost(const at::Tensor& values, double* out) {
  const at::Tensor host = values.to(at::kDouble).cpu().contiguous();
  std::copy_n(host.const_data_ptr<double>(), host.numel(), out);
}

// The tensors of a backward pass from which the norms of each example's gradient are computed.
struct Traces {
  std::vector<LayerTrace> layers;
  at::Tensor log_variance;  // [chains, n], one for each example; undefined if the likelihood has none
};

// [chains, n] over all parameters.
at::Tensor SumOfNorms(const Traces& traces, int64_t chains) {
  const c10::AutoGradMode autograd(false);
  at::Tensor sum;
  if (traces.log_variance.defined()) sum = traces.log_variance.grad().to(at::kDouble).square();
  for (const LayerTrace& trace : traces.layers) {
    const at::Tensor squares = SquaredExampleNorms(trace, chains);
    sum = sum.defined() ? sum + squares : squares;
  }
  return sum;
}

// -log prior of chains [first, first + count): [count] doubles on their device. `precisions` null: `precision` for all.
at::Tensor MinusLogPrior(const ThetaArena& theta, const double* precisions, double precision, int64_t first,
                         int64_t count) {
  const at::Tensor rows = RowsView(theta).narrow(0, first, count);
  // A GPU's norm widens each value as it reads it, so it makes no copy of theta in double.
  const at::Tensor squares = rows.is_cuda()
                                 ? at::linalg_vector_norm(rows, 2, at::IntArrayRef{1}, false, at::kDouble).square()
                                 : rows.to(at::kDouble).square().sum(1);
  if (precisions == nullptr) return squares * (precision / 2);
  return squares * (Uploaded(precisions + first, {count}, rows.device()) / 2);
}

class EagerPotential final : public Potential {
 public:
  EagerPotential(NetworkShape network, std::shared_ptr<const Layout> layout,
                 std::shared_ptr<const ResidentDataset> dataset, const NetworkSettings& settings, Device device,
                 ChainBatching batching, std::shared_ptr<const StoredNetwork> script)
      : network_(std::move(network)),
        layout_(std::move(layout)),
        dataset_(std::move(dataset)),
        likelihood_(MakeLikelihood(settings.likelihood, dataset_->num_classes(), settings.target_units)),
        prior_precision_(settings.prior_precision),
        device_(TorchDevice(device)),
        batching_(batching),
        script_(std::move(script)),
        rows_(dataset_, network_.input_shape, settings, device_) {
    const Dataset& data = dataset_->description();
    const bool numbers = std::holds_alternative<Numbers>(data.targets);
    const std::vector<float> targets = dataset_->TargetNumbers(settings.target_units);
    targets_ = at::tensor(targets, at::kFloat).to(device_, numbers ? at::kFloat : at::kLong);
    if (script_ != nullptr) features_ = rows_.Features(*script_);
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return dataset_->description().num_rows; }
  double prior_precision() const override { return prior_precision_; }
  const std::vector<ParameterShape>& statistics() const override { return network_.statistics; }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    EvaluateParts(theta, batch, gradient, ToHost(energy), nullptr);
  }

  Late<double> EvaluateLate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient) override {
    if (!device_.is_cuda()) return Potential::EvaluateLate(theta, batch, gradient);
    std::vector<at::Tensor> energies;
    EvaluateParts(
        theta, batch, gradient, [&](int64_t, const at::Tensor& of_part) { energies.push_back(of_part); }, nullptr);
    return CopyLate<double>(energies.size() == 1 ? energies.front() : at::cat(energies), theta.rows());
  }

  bool EvaluateWithNorms(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy,
                         double* squared_norms) override {
    if (!network_.statistics.empty()) return false;  // with batch norm an example has no gradient of its own
    EvaluateParts(theta, batch, gradient, ToHost(energy), squared_norms);
    return true;
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    ForEachPart(theta.rows(), batch.size, [&](int64_t first, int64_t count) {
      const c10::AutoGradMode autograd(false);
      CopyToHost(BatchLosses(Parameters(theta, first, count), first, count, batch), losses + first * batch.size);
    });
  }

  bool AddCurvature(const ThetaArena& theta, const CurvatureSlice* slices) override {
    ForEachAlone(theta.rows(), [&](int64_t row) {
      const auto [sum, begin, size] = slices[row];
      if (sum == nullptr) return;
      const std::vector<at::Tensor> parameters = Parameters(theta, row, 1);
      const at::Tensor x = features_.empty() ? rows_.Range(begin, size) : at::Tensor();
      if (script_ != nullptr) {
        AddStoredCurvature(*likelihood_, parameters, size, OneByOne(x, begin), sum);
      } else {
        AddNetworkCurvature(network_, *likelihood_, parameters, x, sum);
      }
    });
    return true;
  }

  void LogPrior(const ThetaArena& theta, const double* prior_precisions, double* log_prior) override {
    CopyToHost(-MinusLogPrior(theta, prior_precisions, prior_precision_, 0, theta.rows()), log_prior);
  }

  std::vector<std::vector<float>> DrawStatistics(const ThetaArena& theta, int64_t first, int64_t count) override {
    std::vector<std::vector<float>> of_rows;
    if (network_.statistics.empty()) of_rows.resize(static_cast<size_t>(count));
    const int64_t at_once = batching_ == ChainBatching::kTogether ? count : 1;
    while (std::ssize(of_rows) < count) {
      const at::Tensor means = MeanStatistics(Parameters(theta, first + std::ssize(of_rows), at_once)).cpu();
      for (int64_t row = 0; row < at_once; ++row) {
        const float* const values = means.const_data_ptr<float>() + row * means.size(1);
        of_rows.emplace_back(values, values + means.size(1));
      }
    }
    return of_rows;
  }

 private:
  // Calls `part(first, count)` for ranges of [0, all). Each element of a range has a minibatch of `batch_size`.
  template <typename Part>
  void ForEachPart(int64_t all, int64_t batch_size, const Part& part) const {
    int64_t most = batching_ == ChainBatching::kInLanes ? kChainLanes : 1;
    if (batching_ == ChainBatching::kTogether) most = MostChainsTogether(network_, batch_size);
    ForEachAlone((all + most - 1) / most, [&](int64_t call) { part(call * most, std::min(most, all - call * most)); });
  }

  // On a CPU each call is on a thread of its own.
  template <typename Call>
  void ForEachAlone(int64_t calls, const Call& call) const {
    if (batching_ != ChainBatching::kTogether && !device_.is_cuda()) return RunSingleThreaded(calls, call);
    for (int64_t i = 0; i < calls; ++i) call(i);
  }

  // Receives the energies of chains from `first` on, as doubles on the device.
  using TakeEnergies = std::function<void(int64_t first, const at::Tensor& energies)>;

  static TakeEnergies ToHost(double* energy) {
    return [energy](int64_t first, const at::Tensor& energies) { CopyToHost(energies, energy + first); };
  }

  // `squared_norms` may be null.
  void EvaluateParts(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, const TakeEnergies& take,
                     double* squared_norms) const {
    const double scale = static_cast<double>(num_examples()) / static_cast<double>(batch.size);
    ForEachPart(theta.rows(), batch.size, [&](int64_t first, int64_t count) {
      const c10::AutoGradMode autograd(true);
      std::vector<at::Tensor> parameters = Parameters(theta, first, count);
      for (at::Tensor& parameter : parameters) parameter = parameter.detach().requires_grad_(true);
      Traces traces;
      const bool traced = squared_norms != nullptr && script_ == nullptr;
      const at::Tensor losses = BatchLosses(parameters, first, count, batch, traced ? &traces : nullptr);
      losses.backward(at::full_like(losses, scale));
      const std::vector<at::Tensor> gradients = Parameters(*gradient, first, count);
      for (size_t k = 0; k < parameters.size(); ++k) {
        const at::Tensor& of_likelihood = parameters[k].grad();
        // A module may have parameters that it does not use.
        if (of_likelihood.defined()) gradients[k].copy_(of_likelihood);
        if (!of_likelihood.defined()) gradients[k].zero_();
      }
      const at::Tensor prior = MinusLogPrior(theta, batch.prior_precisions, prior_precision_, first, count);
      take(first, losses.detach().to(at::kDouble).sum(1) * scale + prior);
      if (traced) CopyToHost(SumOfNorms(traces, count) / (scale * scale), squared_norms + first * batch.size);
      if (squared_norms == nullptr || traced) return;
      for (int64_t row = first; row < first + count; ++row) {
        CopyToHost(StoredNorms(theta, row, batch), squared_norms + row * batch.size);
      }
    });
  }

  std::vector<at::Tensor> Parameters(const ThetaArena& arena, int64_t first, int64_t count) const {
    std::vector<at::Tensor> views;
    for (size_t k = 0; k < layout_->spans().size(); ++k) {
      views.push_back(ParameterView(arena, static_cast<int64_t>(k)).narrow(0, first, count));
    }
    return views;
  }

  // Outputs [count, n, K] of chains [first, first + count).
  at::Tensor BatchOutputs(const std::vector<at::Tensor>& parameters, int64_t first, int64_t count,
                          const BatchRows& batch, const at::Tensor& ids, Traces* traces) const {
    const bool drops = batch.keys != nullptr && batch.dropout;
    const ForwardMode mode{.dropout = drops ? batch.keys + first : nullptr,
                           .traces = traces == nullptr ? nullptr : &traces->layers};
    if (!features_.empty()) {
      std::vector<at::Tensor> of_batch;
      for (const at::Tensor& feature : features_)
        of_batch.push_back(feature.index_select(0, ids).unflatten(0, {count, batch.size}));
      return script_->LogitsOf(parameters, of_batch, mode);
    }
    return LogitsOf(network_, script_.get(), parameters, rows_.Batch(ids, batch, first, count), mode);
  }

  // Runs one example of a stored network: row i of x [1, n, input_shape...], or where there are features, of all data
  // from `begin` on or, if there are `ids`, with these.
  OutputsOfExample OneByOne(at::Tensor x, int64_t begin, at::Tensor ids = {}) const {
    return [=, this](const std::vector<at::Tensor>& parameters, int64_t i) {
      if (features_.empty()) return script_->Logits(parameters, x.narrow(1, i, 1)).squeeze(0);
      const int64_t row = ids.defined() ? ids[i].item<int64_t>() : begin + i;
      std::vector<at::Tensor> of_example;
      for (const at::Tensor& feature : features_) of_example.push_back(feature.narrow(0, row, 1).clone().unsqueeze(0));
      return script_->LogitsOf(parameters, of_example).squeeze(0);
    };
  }

  // [n]
  at::Tensor StoredNorms(const ThetaArena& theta, int64_t chain, const BatchRows& batch) const {
    const at::Tensor ids = BatchIds(batch, chain, 1, device_);
    const at::Tensor x = features_.empty() ? rows_.Batch(ids, batch, chain, 1) : at::Tensor();
    return StoredExampleNorms(*likelihood_, Parameters(theta, chain, 1), targets_.index_select(0, ids),
                              OneByOne(x, 0, ids.cpu()));
  }

  // Losses of the examples of chains [first, first + count): [count, n] on the device.
  at::Tensor BatchLosses(const std::vector<at::Tensor>& parameters, int64_t first, int64_t count,
                         const BatchRows& batch, Traces* traces = nullptr) const {
    const at::Tensor ids = BatchIds(batch, first, count, device_);
    const at::Tensor outputs = BatchOutputs(parameters, first, count, batch, ids, traces);
    at::Tensor log_variance = likelihood_->has_log_variance() ? parameters.back() : at::Tensor();
    if (log_variance.defined() && traces != nullptr) {
      log_variance = traces->log_variance = log_variance.expand({count, batch.size});
      log_variance.retain_grad();
    }
    return likelihood_->Losses(outputs, targets_.index_select(0, ids).view({count, batch.size}), log_variance);
  }

  // Means over all data: [chains, values of all statistics].
  at::Tensor MeanStatistics(const std::vector<at::Tensor>& parameters) const {
    const int64_t batches = (num_examples() + kStatisticsBatch - 1) / kStatisticsBatch;
    at::Tensor sum;
    for (int64_t begin = 0; begin < batches; begin += kStatisticsRound) {
      const int64_t count = std::min(kStatisticsRound, batches - begin);
      std::vector<at::Tensor> of_batch(count);
      ForEachAlone(count, [&](int64_t b) { of_batch[b] = BatchStatistics(parameters, begin + b); });
      if (!sum.defined()) sum = at::zeros_like(of_batch.front());
      for (const at::Tensor& statistics : of_batch) sum += statistics;
    }
    return (sum / static_cast<double>(num_examples())).to(at::kFloat);
  }

  // The statistics of batch `b` of the pass over all data, in doubles and multiplied by its number of examples.
  at::Tensor BatchStatistics(const std::vector<at::Tensor>& parameters, int64_t b) const {
    const c10::AutoGradMode autograd(false);
    const int64_t first = b * kStatisticsBatch, count = std::min(kStatisticsBatch, num_examples() - first);
    const at::Tensor images = rows_.Range(first, count);
    std::vector<int64_t> of_chains = images.sizes().vec();
    of_chains[0] = parameters.front().size(0);
    std::vector<at::Tensor> statistics;
    LogitsOf(network_, script_.get(), parameters, images.expand(of_chains), {.batch_statistics = &statistics});
    return at::cat(statistics, 1).to(at::kDouble) * static_cast<double>(count);
  }

  const NetworkShape network_;
  const std::shared_ptr<const Layout> layout_;
  const std::shared_ptr<const ResidentDataset> dataset_;
  const std::unique_ptr<const Likelihood> likelihood_;
  const double prior_precision_;
  const at::Device device_;
  const ChainBatching batching_;
  const std::shared_ptr<const StoredNetwork> script_;  // null: the network's layers
  const TrainingRows rows_;
  at::Tensor targets_;                // [N] labels or numbers
  std::vector<at::Tensor> features_;  // TrainingRows::Features; empty: each batch runs the whole network
};

}  // namespace

int64_t MostChainsTogether(const NetworkShape& network, int64_t batch_size) {
  int64_t largest = batch_size * std::max(NumValues(network.input_shape), network.largest_output);
  for (const ParameterShape& parameter : network.parameters) largest = std::max(largest, NumValues(parameter.shape));
  return std::max<int64_t>(1, std::numeric_limits<int32_t>::max() / largest);
}

std::unique_ptr<Potential> MakeEagerPotential(NetworkShape network, std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const NetworkSettings& settings, Device device, ChainBatching batching,
                                              std::shared_ptr<const StoredNetwork> script) {
  return std::make_unique<EagerPotential>(std::move(network), std::move(layout), std::move(dataset), settings, device,
                                          batching, std::move(script));
}

}  // namespace chainfleet
