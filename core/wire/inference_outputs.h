// The tensors of a served model, in one list for its description and its answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

inline constexpr char kErrorSuffix[] = "_error";
inline constexpr char kMemberPrefix[] = "member_";
inline constexpr char kQuantiles[] = "quantiles";
inline constexpr char kQuantileErrors[] = "quantiles_error";

// Whether `output` has a number for each level of the parameter "quantiles".
bool IsOfQuantiles(const std::string& output);

// Name, datatype, shape of one row; -1: known only once it is asked for (draws, levels).
struct InferenceTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> row_shape;
};

// Of a job with inputs of this shape and type.
std::vector<InferenceTensor> InferenceInputs(const std::vector<int64_t>& input_shape, InputType type);

// Every output of a job that learns these: scores, their errors, quantiles and theirs, members.
std::vector<InferenceTensor> InferenceOutputs(const Targets& targets);

// What is sent without a list: scores, with `errors` also those, with `quantiles` also these.
std::vector<std::string> UsualOutputs(const Targets& targets, bool errors, bool quantiles);

// Bytes that a row of these outputs, with so many levels of `quantiles`, takes in an answer; without those of members,
// whose number is known only once the draws are.
int64_t RowBytes(const std::vector<std::string>& outputs, const Targets& targets, int64_t num_quantiles);

// INVALID_ARGUMENT for an output that a model of these targets has not, with the names there are, that stands twice, or
// of quantiles without their levels.
absl::Status CheckOutputs(const std::vector<std::string>& outputs, const Targets& targets, bool quantiles);

// Adds the output `name`, which CheckOutputs knows, [n, ...] of row_shape; draws of members by (chain, kind), oldest
// first. An error that is not known (one chain of few draws) is NaN.
void AddOutput(const Prediction& prediction, const std::string& name, inference::ModelInferResponse* response);

// The draws of a member output: "CHAIN/KIND:NUMBER" with commas, and their weights likewise.
std::string NamesOfMembers(const Prediction& prediction);
std::string WeightsOfMembers(const Prediction& prediction);

}  // namespace chainfleet
