// The Open Inference Protocol's tensors and parameters <-> core/domain. Errors are for whoever sent the request: they
// name its tensors and parameters and nothing of ours.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/domain/prediction.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

// What a ModelInferRequest asks for.
struct InferenceCall {
  std::string id;                    // of the request, for the reply
  std::string model;                 // name, id or alias of a job
  int64_t version = 0;               // 0: newest
  InputTensor input;                 // FP16, BF16 and FP64 as float32
  std::vector<std::string> outputs;  // as named; empty: UsualOutputs
  std::vector<DrawKind> kinds;       // empty: all the job keeps
  std::vector<int32_t> chains;       // empty: all
  int64_t members = 0, every = 0, max_draws = 0, min_draws = 0;
  bool include_failed = false, anytime = false;
  std::string point;
  std::vector<double> quantiles;  // levels; their range is not checked here
  absl::Duration timeout = absl::InfiniteDuration();
  int priority = 1;  // 0 to 2, the lower the sooner; the protocol counts from 1 and means the default by 0

  bool WantsErrors() const;
  bool WantsMembers() const;  // what each draw says
};

// INVALID_ARGUMENT: not exactly the input "x"; a datatype that no input has; a shape that is negative or overflows; raw
// bytes and contents mixed, or not of the shape's size; a value beyond float32; an unknown or malformed parameter; an
// output of quantiles without levels.
absl::StatusOr<InferenceCall> FromProto(inference::ModelInferRequest request);

// "" is 0, the newest. INVALID_ARGUMENT unless a number from 1 on.
absl::StatusOr<int64_t> VersionFromProto(const std::string& version);

// id and model_name are as in the request. The parameters "members" and "member_weights" name the draws of the member
// outputs. All of call.outputs are known (CheckOutputs).
inference::ModelInferResponse ToProto(const Prediction& prediction, const InferenceCall& call);

}  // namespace chainfleet
