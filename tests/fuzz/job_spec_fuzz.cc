// libFuzzer target: job specs as any caller likes, from the message to the check against a data set.
//
// The first byte chooses the data set. The rest is a v1::JobSpec. An accepted job must have sizes that the scheduler
// can add up: no overflow, no more memory than a chain may take, no more bytes than a reply carries.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "core/base/limits.h"
#include "core/domain/chain_memory.h"
#include "core/domain/sweep_points.h"
#include "core/domain/wire_bytes.h"
#include "core/wire/jobs_wire.h"

namespace {

using chainfleet::Dataset;
using chainfleet::JobSpec;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

Dataset DatasetOf(uint8_t choice) {
  Dataset dataset{.name = "data", .input_shape = {13}, .num_rows = 100, .targets = chainfleet::Classes{2}};
  if ((choice & 3) == 1) dataset.input_shape = {3, 32, 32};
  if ((choice & 3) == 2) dataset.input_shape = {65536, 1024, 1024};
  if ((choice & 4) != 0) dataset.num_rows = int64_t{1} << 40;
  if ((choice & 8) != 0) dataset.targets = chainfleet::Classes{65536};
  if ((choice & 16) != 0) {
    dataset.targets = chainfleet::Numbers();
  }
  return dataset;
}

void CheckAccepted(const JobSpec& spec, const Dataset* dataset) {
  const int64_t bytes = dataset != nullptr
                            ? EstimateChainBytes(spec, dataset->input_shape, chainfleet::NumClasses(dataset->targets),
                                                 nullptr, dataset->num_rows)
                            : EstimateChainBytes(spec, {}, 0);
  Require(bytes >= 0, "an estimate is not negative");
  Require(bytes <= chainfleet::limits::kMaxChainBytes, "a chain takes no more memory than allowed");
  const chainfleet::StepPlan plan = PlanSteps(spec, dataset != nullptr ? dataset->num_rows : 1);
  Require(plan.total_steps > 0 && plan.NumDraws() > 0, "a chain has steps and draws");
  Require(NumChains(spec) >= 1 && NumChains(spec) <= chainfleet::limits::kMaxChainsPerJob, "chains are bounded");
  Require(WireBytes(spec) >= static_cast<int64_t>(chainfleet::ToProto(spec).ByteSizeLong()), "the estimate holds");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chainfleet::v1::JobSpec message;
  if (size < 1 || !message.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  const absl::StatusOr<JobSpec> spec = chainfleet::FromProto(message);
  if (!spec.ok()) {
    Require(absl::IsInvalidArgument(spec.status()), "a refusal is INVALID_ARGUMENT");
    return 0;
  }
  if (!Validate(*spec).empty()) return 0;
  const Dataset dataset = DatasetOf(data[0]);
  const Dataset* const used = spec->model.has_data() ? &dataset : nullptr;
  if (CheckAgainstData(*spec, used).ok()) CheckAccepted(*spec, used);
  return 0;
}
