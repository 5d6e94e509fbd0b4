// The tensors of a served model: one list for its description and its answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/network_signature.h"
#include "core/domain/prediction.h"
#include "inference/grpc_service.pb.h"

namespace chainfleet {

inline constexpr char kErrorSuffix[] = "_error";
inline constexpr char kMemberPrefix[] = "member_";
inline constexpr char kQuantiles[] = "quantiles";
inline constexpr char kQuantileErrors[] = "quantiles_error";
inline constexpr char kPredictionSet[] = "prediction_set";
inline constexpr char kInterval[] = "interval";
inline constexpr char kMeanGradient[] = "mean_gradient";
inline constexpr char kMemberGradients[] = "member_gradients";

// Returns true if `output` has a number for each level of the parameter "quantiles".
bool IsOfQuantiles(const std::string& output);
bool IsGradient(const std::string& output);
// Returns true if `output` needs the parameter "conformal".
bool IsConformal(const std::string& output);

// Name, datatype and shape of one row; -1: known only in a request (draws, levels).
struct InferenceTensor {
  std::string name;
  std::string datatype;
  std::vector<int64_t> row_shape;
};

// Returns the inputs of a job with this shape and type: `x`, or the inputs that are side by side in its rows. These are
// taken by their names if they are stored as float32.
std::vector<InferenceTensor> InferenceInputs(const std::vector<int64_t>& input_shape, InputType type,
                                             const std::vector<TensorSignature>& columns = {});

// Returns every output of a job with these targets: scores, their errors, quantiles, quantile errors, conformal sets
// or intervals, members, gradients. Without `input_shape` the shapes of gradients lack it.
std::vector<InferenceTensor> InferenceOutputs(const Targets& targets, const std::vector<int64_t>& input_shape = {});

// Returns the outputs of a request without a list: scores, their errors if `errors`, quantiles if `quantiles`, sets or
// intervals if `conformal`.
std::vector<std::string> UsualOutputs(const Targets& targets, bool errors, bool quantiles, bool conformal = false);

// Returns the bytes that one row of these outputs takes in an answer, with `num_quantiles` levels. Excludes members,
// whose number is known only when the draws are known, and gradients.
int64_t RowBytes(const std::vector<std::string>& outputs, const Targets& targets, int64_t num_quantiles);

// INVALID_ARGUMENT for an output that a model of these targets does not have (lists all names), for a repeated output,
// for quantiles without levels, and for sets and intervals if not `conformal`.
absl::Status CheckOutputs(const std::vector<std::string>& outputs, const Targets& targets, bool quantiles,
                          bool conformal = false);

// Adds the output `name` [n, ...] of row_shape. Draws of members are sorted by (chain, kind), oldest first. An unknown
// error (one chain with few draws) is NaN. REQUIRES: CheckOutputs accepts `name`.
void AddOutput(const Prediction& prediction, const std::string& name, const std::vector<int64_t>& input_shape,
               inference::ModelInferResponse* response);

// INVALID_ARGUMENT unless `output` is [n, K].
absl::Status CheckClassification(const std::string& output, const Targets& targets);

// Triton's extension "classification": replaces the last output, [n, K], by its `count` largest classes (all if there
// are fewer), largest first, as BYTES "VALUE:CLASS", or "VALUE:CLASS:NAME" if classes have names.
void KeepBestClasses(int64_t count, const std::vector<std::string>& class_names,
                     inference::ModelInferResponse* response);

// Returns the draws of a member output, "CHAIN/KIND:NUMBER" with commas, and their weights in the same order.
std::string NamesOfMembers(const Prediction& prediction);
std::string WeightsOfMembers(const Prediction& prediction);

}  // namespace chainfleet
