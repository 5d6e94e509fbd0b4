// The model of a plan for predictions: on the CPU, forward only, one example at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "worker/numerics/likelihoods/likelihood.h"
#include "worker/numerics/models/block_network.h"
#include "worker/numerics/predict/draw_stack.h"

namespace chainfleet {

struct ModelFile;

// Immutable. A predictor and the runs that it has started share it. Thread-safe.
struct ServedModel {
  std::shared_ptr<const PredictPlan> plan;
  // The layers: one linear layer for a regression, none for a module.
  NetworkShape network;
  std::shared_ptr<const StoredNetwork> script;  // null unless the model is a module
  std::unique_ptr<const Likelihood> likelihood;
  int64_t draw_size = 0;  // parameters and statistics
  std::function<std::unique_ptr<BlockNetwork>()> make_block;

  // Position of the log variance in a draw, for a likelihood that has one.
  int64_t log_variance_at() const { return network.parameters.back().offset; }

  // INVALID_ARGUMENT unless the plan fits: the draws of a stack; rows [first, first + count) of a data set; its labels
  // or targets.
  absl::Status CheckDraws(const DrawStack& draws) const;
  absl::Status CheckRows(const Dataset& dataset, int64_t first, int64_t count) const;
  absl::Status CheckTargets(const Dataset& dataset) const;
};

// INVALID_ARGUMENT: this build lacks the model, or it makes no predictions. `module` as for Predictor::Create.
absl::StatusOr<std::shared_ptr<const ServedModel>> MakeServedModel(std::shared_ptr<const PredictPlan> plan,
                                                                   const ModelFile* module);

}  // namespace chainfleet
