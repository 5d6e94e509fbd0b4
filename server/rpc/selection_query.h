// Parses the selection of draws of a request, and evaluation requests.
#pragma once

#include <string>
#include <vector>

#include "chainfleet/v1/predict.pb.h"
#include "core/base/status.h"
#include "server/predict/evaluation/evaluation_operations.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// INVALID_ARGUMENT lists every field that is invalid for any job.
absl::Status CheckSelection(const v1::DrawSelection& selection);

// `job` is a job id.
DrawQuery QueryOf(const std::string& job, const v1::DrawSelection& selection);

// Parses the kinds of draws. INVALID_ARGUMENT for a kind that this build does not know.
absl::StatusOr<std::vector<DrawKind>> KindsOf(const v1::DrawSelection& selection);

// Parses `request`, whose `job` is an id. INVALID_ARGUMENT.
absl::StatusOr<EvaluateQuery> QueryOf(const v1::EvaluateRequest& request);

// Encodes requests and results as the messages of predict.proto.
EvaluationCodec ProtoEvaluationCodec();

// Renders an evaluation with its stored request and result. INTERNAL: the stored bytes do not parse.
absl::StatusOr<v1::EvaluationOperation> RenderOperation(const EvaluationOperations::View& view);

}  // namespace chainfleet
