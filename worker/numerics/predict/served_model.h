// The model of a plan as predictions use it: on the CPU, forward, example by example.
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

// Immutable, shared by a predictor and what it has started. Thread-safe.
struct ServedModel {
  std::shared_ptr<const PredictPlan> plan;
  // As layers; that of a regression is one linear layer, of a module it has none.
  NetworkShape network;
  std::shared_ptr<const ScriptedNetwork> script;  // of a module, else null
  std::unique_ptr<const Likelihood> likelihood;
  int64_t draw_size = 0;  // parameters and statistics
  std::function<std::unique_ptr<BlockNetwork>()> make_block;

  // Where a draw has the log variance of a likelihood that has it.
  int64_t log_variance_at() const { return network.parameters.back().offset; }

  // INVALID_ARGUMENT unless they fit the plan: the draws of a stack; rows [first, first + count) of a data set; its
  // labels or targets.
  absl::Status CheckDraws(const DrawStack& draws) const;
  absl::Status CheckRows(const Dataset& dataset, int64_t first, int64_t count) const;
  absl::Status CheckTargets(const Dataset& dataset) const;
};

// INVALID_ARGUMENT for a model this build lacks, or that makes no predictions. `module` as for Predictor::Create.
absl::StatusOr<std::shared_ptr<const ServedModel>> MakeServedModel(std::shared_ptr<const PredictPlan> plan,
                                                                   const std::string* module);

}  // namespace chainfleet
