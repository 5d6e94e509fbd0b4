// Which draws a request means, and what an evaluation is asked for.
#pragma once

#include <string>

#include "chainfleet/v1/predict.pb.h"
#include "core/base/status.h"
#include "server/predict/evaluation/evaluation_operations.h"
#include "server/predict/serving/draw_catalog.h"

namespace chainfleet {

// INVALID_ARGUMENT with every field that no job could have.
absl::Status CheckSelection(const v1::DrawSelection& selection);

// `job` is an id.
DrawQuery QueryOf(const std::string& job, const v1::DrawSelection& selection);

// What `request` asks of request.job, an id. INVALID_ARGUMENT.
absl::StatusOr<EvaluateQuery> QueryOf(const v1::EvaluateRequest& request);

// Requests and results as the messages of predict.proto.
EvaluationCodec ProtoEvaluationCodec();

// `stored` with what it was asked and found. INTERNAL for bytes that are no such messages.
absl::StatusOr<v1::EvaluationOperation> RenderOperation(const EvaluationOperations::View& view);

}  // namespace chainfleet
