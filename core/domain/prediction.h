// Predictions as plain values: shards go to workers, workers return float64 sums for each chain, the server averages
// the sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/domain/corruption.h"
#include "core/domain/dataset.h"
#include "core/domain/draw.h"
#include "core/domain/flatness.h"
#include "core/domain/job_spec.h"
#include "core/domain/predictive_scores.h"
#include "core/domain/targets.h"

namespace chainfleet {

// Dense inputs, rows first. Float inputs are on the x / 255 scale of the training images.
struct InputTensor {
  InputType type = InputType::kFloat32;
  std::vector<int64_t> shape;  // [n, input_shape...]
  std::string bytes;           // little-endian, contiguous
  static void Fields(auto& self, auto&& visit) {
    visit("type", self.type);
    visit("shape", self.shape);
    visit("data", self.bytes);
  }
};

// Rows of a stored data set to predict, in place of given inputs. Evaluations read their labels.
struct DatasetRows {
  Dataset dataset;
  int64_t first_row = 0;
  int64_t num_rows = 0;
  static void Fields(auto& self, auto&& visit) {
    visit("dataset", self.dataset);
    visit("first_row", self.first_row);
    visit("num_rows", self.num_rows);
  }
};

// Draws of one chain that a shard averages, as committed segments. A request never splits a chain over two shards. Each
// entry of a chain has a sum of its own.
struct ChainDraws {
  ChainId chain;
  std::vector<Segment> segments;
  int64_t skip_draws = 0;  // number of draws skipped at the start of `segments`
  int64_t num_draws = 0;   // number of draws after these
  int64_t every = 1;       // stride over these draws, counted back from the newest
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("segments", self.segments);
    visit("skip_draws", self.skip_draws);
    visit("num_draws", self.num_draws);
    visit("every", self.every);
  }
};

// The facts about the network that a worker needs; all shards of a job share them.
struct PredictPlan {
  std::string job;
  ModelSpec model;
  std::vector<int64_t> input_shape;
  Targets targets;
  Normalisation normalisation;
  TargetUnits target_units;
  std::optional<BlobRef> module;  // set if the model is a stored module
  std::string tenant;             // the job's
  // Visits all fields but the kind and the likelihood of the model.
  static void Fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("input_shape", self.input_shape);
    VisitTargets(self.targets, visit);
    visit("normalisation", self.normalisation);
    visit("target_units", self.target_units, OrDefault());
    visit("module", self.module);
    visit("sample", self.model.sample, IfAny());
    visit("tenant", self.tenant, IfAny());
  }
};

// Returns the number of values of a gradient for one row.
inline int64_t GradientValues(const PredictPlan& plan) {
  return std::max<int64_t>(NumClasses(plan.targets), 1) * NumValues(plan.input_shape);
}

struct ShardRequest {
  uint64_t shard_id = 0;
  std::shared_ptr<const PredictPlan> plan;
  std::vector<ChainDraws> chains;
  std::vector<DrawKind> kinds;                // kinds to use; each has sums of its own
  std::shared_ptr<const InputTensor> inputs;  // exactly one of `inputs` and `rows` is set
  std::optional<DatasetRows> rows;
  bool per_draw_scores = false;          // with dataset rows: score each draw against the targets
  bool members = false;                  // return each draw's own predictions, too
  bool gradients = false;                // with given inputs: return the gradients of predictions by them, too
  std::optional<Corruption> corruption;  // applied to dataset rows
  std::optional<FlatnessPlan> flatness;  // in place of predictions; dataset rows only
  std::string trace_id;                  // trace of the request, for logs; empty: none
  // Visits all fields but `plan` and `inputs`, which several shards share.
  static void Fields(auto& self, auto&& visit) {
    visit("shard_id", self.shard_id);
    visit("chains", self.chains);
    visit("kinds", self.kinds);
    visit("rows", self.rows);
    visit("per_draw_scores", self.per_draw_scores);
    visit("members", self.members);
    visit("gradients", self.gradients);
    visit("corruption", self.corruption);
    visit("flatness", self.flatness);
    visit("trace_id", self.trace_id);
  }
};

struct NumberMembers {
  std::vector<float> mean, variance;  // [S, n]
  static constexpr RowArray<NumberMembers, float> kArrays[] = {{"mean", &NumberMembers::mean},
                                                               {"variance", &NumberMembers::variance}};
  static void Fields(auto& self, auto&& visit) { VisitArrays(self, visit); }
};

struct ClassMembers {
  std::vector<float> probabilities;  // [S, n, K]
  static constexpr RowArray<ClassMembers, float> kArrays[] = {{"probabilities", &ClassMembers::probabilities, true}};
  static void Fields(auto& self, auto&& visit) { VisitArrays(self, visit); }
};

// The predictions of S single draws for n inputs; float32, draws-major.
struct Members {
  using Outputs = std::variant<NumberMembers, ClassMembers>;
  ChainId chain;
  DrawKind kind = DrawKind::kTheta;
  std::vector<double> weights;  // [S]
  Outputs outputs;
  // [S, n, K, input_shape...] of the probabilities by the inputs, or [S, n, input_shape...] of the means; if asked
  std::vector<float> gradients;

  // REQUIRES: outputs of this sort.
  const NumberMembers& numbers() const { return std::get<NumberMembers>(outputs); }
  const ClassMembers& classes() const { return std::get<ClassMembers>(outputs); }
  // Drops outputs of the other sort: a message tells the sort only where the members are.
  void Keep(const Targets& targets) {
    if (outputs.index() != targets.index()) outputs = EmptyOf<Outputs>(targets);
  }
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("kind", self.kind);
    visit("weights", self.weights);
    ForEachAlternative<Outputs>([&]<typename T>(T other) {
      auto* const held = std::get_if<T>(&self.outputs);
      T::Fields(held != nullptr ? *held : other, visit);
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>) {
        if (!(other.*T::kArrays[0].values).empty()) self.outputs = std::move(other);
      }
    });
    visit("gradients", self.gradients);
  }
};

// Sums over S draws of n inputs with float32 targets; float64. w: a draw's weight, m and v: its mean and variance, d
// and c: its density and distribution function at the row's target.
struct NumberSums {
  std::vector<double> sum_wm, sum_wm2, sum_wv;  // [n]
  std::vector<double> log_sum_wd;               // [n] the sum's logarithm, empty unless asked
  std::vector<double> sum_wc;                   // [n] empty unless asked

  static constexpr RowArray<NumberSums> kArrays[] = {
      {"sum_wm", &NumberSums::sum_wm}, {"sum_wm2", &NumberSums::sum_wm2}, {"sum_wv", &NumberSums::sum_wv}};
  Targets targets() const { return Numbers(); }
  static void Fields(auto& self, auto&& visit) {
    VisitArrays(self, visit);
    visit("log_sum_wd", self.log_sum_wd);
    visit("sum_wc", self.sum_wc);
  }
};

// The same of labels of K classes, rows-major. p: a draw's class probabilities, H: their entropy in nats.
struct ClassSums {
  int64_t num_classes = 0;         // K
  std::vector<double> sum_wp;      // [n, K]
  std::vector<double> sum_wp2;     // [n, K], w p^2
  std::vector<double> sum_wh;      // [n]
  std::vector<double> votes;       // [n, K], w of the draws whose largest class it is
  std::vector<int64_t> draw_hits;  // [S] rows whose largest class is the label, empty unless asked

  static constexpr RowArray<ClassSums> kArrays[] = {{"sum_wp", &ClassSums::sum_wp, true},
                                                    {"sum_wp2", &ClassSums::sum_wp2, true},
                                                    {"sum_wh", &ClassSums::sum_wh},
                                                    {"votes", &ClassSums::votes, true}};
  Targets targets() const { return Classes{num_classes}; }
  static void Fields(auto& self, auto&& visit) {
    VisitArrays(self, visit);
    visit("draw_hits", self.draw_hits);
  }
};

inline std::variant<NumberSums, ClassSums> EmptySums(const Targets& targets) {
  if (const auto* classes = std::get_if<Classes>(&targets)) return ClassSums{.num_classes = classes->count};
  return NumberSums();
}

// Sums over the draws of one chain and one kind. The server adds the sums of the chains in chain order.
struct PartialPrediction {
  ChainId chain;
  DrawKind kind = DrawKind::kTheta;
  int64_t num_draws = 0;  // S, without corrupt draws
  int64_t num_rows = 0;   // n
  double sum_w = 0, sum_w2 = 0;
  std::variant<NumberSums, ClassSums> sums;
  std::vector<double> sum_wg;  // g: gradient of a draw's p or m by the inputs, [n, K or none, input_shape...]; if asked

  std::vector<double> draw_log_likelihood;  // [S] sum over rows of log p(target); empty unless requested
  std::vector<double> draw_weights;         // [S]; empty from workers of older releases: all weights are equal
  std::optional<Members> members;           // only if requested
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("kind", self.kind);
    visit("num_draws", self.num_draws);
    visit("num_rows", self.num_rows);
    Targets targets = self.targets();
    VisitTargets(targets, visit);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>) self.sums = EmptySums(targets);
    visit("sum_w", self.sum_w);
    visit("sum_w2", self.sum_w2);
    VisitSorts(self.sums, visit);
    visit("sum_wg", self.sum_wg);
    visit("draw_log_likelihood", self.draw_log_likelihood);
    visit("draw_weights", self.draw_weights);
    visit("members", self.members);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>) {
      if (self.members) self.members->Keep(targets);
    }
  }

  Targets targets() const {
    return std::visit([](const auto& of) { return of.targets(); }, sums);
  }
  // REQUIRES: sums of this sort.
  NumberSums& numbers() { return std::get<NumberSums>(sums); }
  const NumberSums& numbers() const { return std::get<NumberSums>(sums); }
  ClassSums& classes() { return std::get<ClassSums>(sums); }
  const ClassSums& classes() const { return std::get<ClassSums>(sums); }
};

struct ShardResult {
  uint64_t shard_id = 0;
  std::vector<PartialPrediction> partials;   // by entry of the request, then kind; none if all draws are corrupt
  std::vector<std::string> corrupt_objects;  // objects whose bytes did not match their digest
  std::vector<Flatness> flatness;            // by chain, only if requested
  static void Fields(auto& self, auto&& visit) {
    visit("shard_id", self.shard_id);
    visit("partials", self.partials);
    visit("corrupt_objects", self.corrupt_objects);
    visit("flatness", self.flatness);
  }
};

// The Bayesian model average over the draws of a version.
struct Prediction {
  std::string job;  // job id
  int64_t version = 0;
  std::string point;       // sweep point, by name
  int64_t draws_used = 0;  // the fewest draws behind any row
  int64_t draws_in_version = 0;
  int64_t num_rows = 0;
  Targets targets;
  PredictiveScores scores;
  PredictiveScores errors;               // Monte Carlo standard error of each score (server/predict); none: unknown
  std::vector<double> quantiles;         // [n, Q] of the mixture of the draws' distributions, if asked
  std::vector<double> quantile_errors;   // one each, [n, Q]; empty: unknown; NaN where the mixture has no density
  std::vector<double> mean_gradient;     // gradient of the average, shaped as PartialPrediction::sum_wg; if asked
  std::vector<Members> members;          // by (chain, kind), if asked
  std::vector<int32_t> prediction_set;   // [n, K] 1 for a class of the row's conformal set, else 0; if asked
  std::vector<double> interval;          // [n, 2] the same of float32 targets: both ends
  std::vector<std::string> class_names;  // names of classes 0, 1, ...; empty: unnamed. Set by the service
  static void Fields(auto& self, auto&& visit) {
    visit("job_id", self.job);
    visit("version", self.version);
    visit("point", self.point);
    visit("draws_used", self.draws_used);
    visit("draws_in_version", self.draws_in_version);
    visit("num_rows", self.num_rows);
    VisitTargets(self.targets, visit);
    constexpr bool kReads = !std::is_const_v<std::remove_reference_t<decltype(self)>>;
    if constexpr (kReads) self.scores.of = self.errors.of = EmptyOf<decltype(self.scores.of)>(self.targets);
    visit("scores", self.scores);
    visit("errors", self.errors, IfAny());
    visit("quantiles", self.quantiles);
    visit("quantile_errors", self.quantile_errors);
    visit("mean_gradient", self.mean_gradient);
    visit("members", self.members);
    visit("prediction_set", self.prediction_set);
    visit("interval", self.interval);
    visit("class_names", self.class_names);
    if constexpr (kReads) {
      for (Members& members : self.members) members.Keep(self.targets);
    }
  }
};

}  // namespace chainfleet
