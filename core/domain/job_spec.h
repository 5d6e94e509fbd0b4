// A sampling job as its user wrote it, and the plan of steps that follows from it. Plain values; defaults are the field
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/domain/augmentation_spec.h"
#include "core/domain/dataset.h"
#include "core/domain/draw.h"
#include "core/domain/init_spec.h"
#include "core/domain/model_spec.h"
#include "core/domain/prior_spec.h"
#include "core/domain/retention_spec.h"
#include "core/domain/sampler_spec.h"
#include "core/domain/schedule_spec.h"
#include "core/domain/scheduling_spec.h"
#include "core/domain/standardize_spec.h"
#include "core/domain/stop_rule.h"
#include "core/domain/sweep_spec.h"

namespace chainfleet {

// `reshuffle`: a keyed permutation per data epoch, the N mod n tail left out. `independent`: n indices with
// replacement.
enum class Minibatches { kReshuffle, kIndependent };
inline std::initializer_list<const char*> EnumNames(Minibatches) {
  static constexpr std::initializer_list<const char*> kNames = {"reshuffle", "independent"};
  return kNames;
}

// Precision of products and convolutions on a GPU: kTf32 rounds their inputs to 10 bits of mantissa. A CPU ignores
// it.
enum class Precision { kFloat32, kTf32 };
inline std::initializer_list<const char*> EnumNames(Precision) {
  static constexpr std::initializer_list<const char*> kNames = {"float32", "tf32"};
  return kNames;
}

// At most one is set; none means no burn-in. Draws and traces start after it.
struct BurnIn {
  std::optional<int64_t> cycles, epochs, steps;
  bool any() const { return cycles || epochs || steps; }
  static void Fields(auto& self, auto&& visit) {
    visit("cycles", self.cycles);
    visit("epochs", self.epochs);
    visit("steps", self.steps);
  }
  bool operator==(const BurnIn&) const = default;
};

// At most one of the first two; none means every_steps = 1.
struct Collect {
  std::optional<int64_t> last_epochs_of_cycle;  // a draw at the end of each of the last k data epochs of every cycle
  std::optional<int64_t> every_steps;           // thinning
  std::vector<DrawKind> kinds;                  // empty: all the sampler has
  int64_t segment_draws = 0;                    // close a segment after so many draws; 0: by size and age alone
  static void Fields(auto& self, auto&& visit) {
    visit("last_epochs_of_cycle", self.last_epochs_of_cycle);
    visit("every_steps", self.every_steps);
    visit("kinds", self.kinds);
    visit("segment_draws", self.segment_draws);
  }
  bool operator==(const Collect&) const = default;
};

struct JobSpec {
  std::string name;
  ModelSpec model;
  std::string dataset;  // name; empty for analytic potentials
  PriorSpec prior;
  SamplerSpec sampler;
  ScheduleSpec schedule;
  double temperature = 1;
  int64_t batch_size = 128;
  Minibatches minibatches = Minibatches::kReshuffle;
  StandardizeSpec standardize;
  InitSpec init;
  AugmentationSpec augmentation;
  Precision precision = Precision::kFloat32;
  std::optional<int64_t> num_epochs, num_steps;  // exactly one
  BurnIn burn_in;
  int32_t chains = 1;  // of each point
  SweepSpec sweep;     // empty: one point
  Collect collect;
  uint64_t seed = 0;
  int64_t resume_point_every_steps = 0;  // 0: by time, see worker/runtime
  SchedulingSpec scheduling;
  RetentionSpec retention;
  SnapshotsSpec snapshots;
  StopRuleSpec until;
  std::optional<int64_t> trace_every;  // steps; none: so that the newest kTraceWindow values hold all of a run
  // All but the choices of model, prior, sampler and schedule, and the data set.
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name);
    visit("temperature", self.temperature);
    visit("batch_size", self.batch_size);
    visit("minibatches", self.minibatches);
    visit("standardize", self.standardize);
    visit("init", self.init, IfAny());
    visit("augmentation", self.augmentation, IfAny());
    visit("precision", self.precision);
    visit("num_epochs", self.num_epochs);
    visit("num_steps", self.num_steps);
    visit("burn_in", self.burn_in, IfAny());
    visit("chains", self.chains);
    visit("sweep", self.sweep, IfAny());
    visit("collect", self.collect);
    visit("seed", self.seed);
    visit("resume_point_every_steps", self.resume_point_every_steps);
    visit("scheduling", self.scheduling);
    visit("retention", self.retention, IfAny());
    visit("snapshots", self.snapshots, IfAny());
    visit("until", self.until, IfAny());
    visit("trace_every", self.trace_every);
  }
  bool operator==(const JobSpec&) const = default;
};

// Everything that can be said without the data set. Paths are those of the job file.
std::vector<FieldViolation> Validate(const JobSpec& spec);

// The same with N, the number of stored examples: batch_size <= N, epochs divisible by cycles, ...
std::vector<FieldViolation> ValidateForData(const JobSpec& spec, int64_t num_examples);

// The same with the data set itself (null for potentials without data): its targets are those that the model learns,
// the shapes fit, each layer that the prior names exists, a chain fits a machine. For a stored module only a worker can
// check the last two.
absl::Status CheckAgainstData(const JobSpec& spec, const Dataset* dataset);

// Violations if inputs [input_shape...] are not images, or are too small for the crop; paths below "augmentation".
std::vector<FieldViolation> ValidateForImages(const AugmentationSpec& augmentation,
                                              const std::vector<int64_t>& input_shape);

// Violations if the data set's targets do not fit the model; path dataset.name, for a network that of its likelihood.
std::vector<FieldViolation> ValidateTargets(const ModelSpec& model, const Dataset& dataset);

// Steps counted from 1: step t is the t-th update of a chain. Pure function of spec and N (N = 1 for analytic
// potentials).
struct StepPlan {
  int64_t steps_per_epoch = 1;  // floor(N / n)
  int64_t training_steps = 0;   // those with a gradient or a proposal
  int64_t pass_steps = 0;       // then those that each look at the next batch of one pass over all data (Laplace)
  int64_t total_steps = 0;      // and those that each sample a network from what training left (SWAG, ...)
  int64_t steps_per_cycle = 0;
  int64_t burn_in_steps = 0;
  int64_t collect_every = 0;  // a draw after step t > burn-in if (t mod collect_every) == 0 ...
  int64_t collect_window =
      0;  // ... and t lies in the last `collect_window` steps of its cycle (= steps_per_cycle: anywhere)
  int64_t trace_every = 0;  // the same for traces: a window of them holds all of a run; 0: none (SWAG, Laplace, ...)

  bool CollectsAfter(int64_t step) const;
  bool TracesAfter(int64_t step) const;
  int64_t NumDraws() const;  // of one whole chain

 private:
  bool InWindow(int64_t step) const;  // after burn-in, where in its cycle draws are collected
};
StepPlan PlanSteps(const JobSpec& spec, int64_t num_examples);

// All kinds the job keeps, in the order theta, theta_a.
std::vector<DrawKind> KindsOf(const JobSpec& spec);

}  // namespace chainfleet
