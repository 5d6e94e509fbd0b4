// Maps tensors and parameters of the Open Inference Protocol to and from core/domain. Errors go to the sender of the
// request: they name its tensors and parameters, and no internals.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/domain/network_signature.h"
#include "core/domain/prediction.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

// The content of a ModelInferRequest.
struct InferenceCall {
  std::string id;                               // id of the request, for the reply
  std::string model;                            // name, id or alias of a job
  int64_t version = 0;                          // 0: newest
  InputTensor input;                            // FP16, BF16 and FP64 are float32 here
  std::vector<std::string> outputs;             // as requested; empty: UsualOutputs
  std::map<std::string, int64_t> best_classes;  // outputs of which only so many classes are asked, as text
  std::vector<DrawKind> kinds;                  // empty: all kinds that the job keeps
  std::vector<int32_t> chains;                  // empty: all
  int64_t members = 0, every = 0, max_draws = 0, min_draws = 0;
  bool include_failed = false, anytime = false;
  bool final_response = false;  // asked in Triton's way; each streamed answer is final anyway
  std::string point;
  std::string weights, conformal;  // ids of evaluations
  bool pseudo_bma = false;
  double level = 0;               // share of rows that conformal sets cover; 0: the default
  std::vector<double> quantiles;  // levels; FromProto does not check their range
  absl::Duration timeout = absl::InfiniteDuration();
  int priority = 1;  // 0 to 2, 0 is served first; the protocol counts from 1, and 0 means the default

  bool HasConformal() const { return !conformal.empty(); }
  bool WantsErrors() const;
  bool WantsMembers() const;  // true if an output holds single draws
  bool WantsGradients() const;
};

// `columns` are the inputs that may come by their names, each once, in place of rows "x" with all of them side by side.
// INVALID_ARGUMENT: other inputs, or of another shape than their column's; an invalid datatype; a shape that is
// negative or overflows; raw bytes and contents mixed, or of the wrong size; a value beyond float32; an unknown or
// malformed parameter, also of an output; an output of quantiles without levels.
absl::StatusOr<InferenceCall> FromProto(inference::ModelInferRequest request,
                                        const std::vector<TensorSignature>& columns = {});

// Maps "" to 0, the newest version. INVALID_ARGUMENT unless the text is a number from 1 on; NOT_FOUND for "0".
absl::StatusOr<int64_t> VersionFromProto(const std::string& version);

// Copies id and model_name from the request. The parameters "members" and "member_weights" name the draws of the member
// outputs. `class_names` is empty or has a name for each class; `input_shape` is needed for gradients only. REQUIRES:
// CheckOutputs and CheckClassification accept the call.
inference::ModelInferResponse ToProto(const Prediction& prediction, const InferenceCall& call,
                                      const std::vector<std::string>& class_names = {},
                                      const std::vector<int64_t>& input_shape = {});

}  // namespace chainfleet
