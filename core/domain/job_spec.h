// A sampling job as its user wrote it, and the step plan that follows from it. Plain values; the field values are the
// defaults.
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

// `posterior`: all chains of a point sample one posterior. `sbc`: each samples one of its own, with targets simulated
// from a draw of the prior (Talts et al. 2018).
enum class JobKind { kPosterior, kSbc };
inline std::initializer_list<const char*> EnumNames(JobKind) {
  static constexpr std::initializer_list<const char*> kNames = {"posterior", "sbc"};
  return kNames;
}

// `reshuffle`: a keyed permutation per data epoch without the N mod n tail. `independent`: n indices with
// replacement.
enum class Minibatches { kReshuffle, kIndependent };
inline std::initializer_list<const char*> EnumNames(Minibatches) {
  static constexpr std::initializer_list<const char*> kNames = {"reshuffle", "independent"};
  return kNames;
}

// Precision of products and convolutions on a GPU: kTf32 rounds their inputs to 10 bits of mantissa. A CPU ignores the
// setting.
enum class Precision { kFloat32, kTf32 };
inline std::initializer_list<const char*> EnumNames(Precision) {
  static constexpr std::initializer_list<const char*> kNames = {"float32", "tf32"};
  return kNames;
}

// At most one field is set; none means no burn-in. Draws and traces start after the burn-in.
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

// At most one of the first two fields is set; none means every_steps = 1.
struct Collect {
  std::optional<int64_t> last_epochs_of_cycle;  // a draw at the end of each of the last k data epochs of every cycle
  std::optional<int64_t> every_steps;           // thinning
  std::vector<DrawKind> kinds;                  // empty: all kinds that the sampler has
  int64_t segment_draws = 0;                    // draws that close a segment; 0: only size and age close it
  static void Fields(auto& self, auto&& visit) {
    visit("last_epochs_of_cycle", self.last_epochs_of_cycle);
    visit("every_steps", self.every_steps);
    visit("kinds", self.kinds);
    visit("segment_draws", self.segment_draws);
  }
  bool operator==(const Collect&) const = default;
};

struct JobSpec {
  JobKind kind = JobKind::kPosterior;
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
  bool vmap = false;  // chains of a small exported network share calls of operators on a CPU
  AugmentationSpec augmentation;
  Precision precision = Precision::kFloat32;
  std::optional<int64_t> num_epochs, num_steps;  // exactly one is set
  BurnIn burn_in;
  int32_t chains = 1;  // chains of each sweep point
  SweepSpec sweep;     // empty: one point
  Collect collect;
  uint64_t seed = 0;
  int64_t resume_point_every_steps = 0;  // 0: by time, see worker/runtime
  SchedulingSpec scheduling;
  RetentionSpec retention;
  SnapshotsSpec snapshots;
  StopRuleSpec until;
  std::optional<int64_t> trace_every;  // steps; none: the newest kTraceWindow values cover the whole run
  // Visits all fields but the data set and the choices of model, prior, sampler and schedule.
  static void Fields(auto& self, auto&& visit) {
    visit("kind", self.kind, IfAny());
    visit("name", self.name);
    visit("temperature", self.temperature);
    visit("batch_size", self.batch_size);
    visit("minibatches", self.minibatches);
    visit("standardize", self.standardize);
    visit("init", self.init, IfAny());
    visit("sample", self.model.sample, IfAny());
    visit("vmap", self.vmap, IfAny());
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

// Makes all checks that need no data set. Paths are the paths of the job file.
std::vector<FieldViolation> Validate(const JobSpec& spec);

// Makes the checks that need N, the number of stored examples: batch_size <= N, epochs divisible by cycles, ...
std::vector<FieldViolation> ValidateForData(const JobSpec& spec, int64_t num_examples);

// Makes all checks against the data set (null for potentials without data): the model can learn its targets, the shapes
// fit, each layer that the prior names exists, a chain fits a machine. For a TorchScript module only a worker
// can check the last two.
absl::Status CheckAgainstData(const JobSpec& spec, const Dataset* dataset, const StoredModel* stored = nullptr,
                              const std::vector<StoredModel>& weights = {});

// Returns violations if inputs [input_shape...] are no images or smaller than the crop; paths below "augmentation".
std::vector<FieldViolation> ValidateForImages(const AugmentationSpec& augmentation,
                                              const std::vector<int64_t>& input_shape);

// Returns violations if the targets do not fit the model, at dataset.name, or for a network at its likelihood's path.
std::vector<FieldViolation> ValidateTargets(const ModelSpec& model, const Dataset& dataset);

// Steps count from 1: step t is the t-th update of a chain. A pure function of spec and N (N = 1 for analytic
// potentials).
struct StepPlan {
  int64_t steps_per_epoch = 1;  // floor(N / n)
  int64_t training_steps = 0;   // steps with a gradient or a proposal
  int64_t pass_steps = 0;       // then steps of one pass over all data, a batch each (Laplace)
  int64_t total_steps = 0;      // all steps, with those that each sample a network after training (SWAG, ...)
  int64_t steps_per_cycle = 0;
  int64_t burn_in_steps = 0;
  int64_t collect_every = 0;  // a draw after step t > burn-in if (t mod collect_every) == 0 ...
  int64_t collect_window =
      0;  // ... and t lies in the last `collect_window` steps of its cycle (= steps_per_cycle: anywhere)
  int64_t trace_every = 0;  // stride of traces: a window covers the whole run; 0: no traces (SWAG, Laplace, ...)

  bool CollectsAfter(int64_t step) const;
  bool TracesAfter(int64_t step) const;
  int64_t NumDraws() const;  // draws of one whole chain

 private:
  bool InWindow(int64_t step) const;  // true after burn-in, in the part of its cycle that collects
};
StepPlan PlanSteps(const JobSpec& spec, int64_t num_examples);

// Returns all kinds that the job keeps, in the order theta, theta_a.
std::vector<DrawKind> KindsOf(const JobSpec& spec);

}  // namespace chainfleet
