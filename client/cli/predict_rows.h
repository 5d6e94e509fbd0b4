// Predictions of more rows than one message holds.
#pragma once

#include <cstdint>
#include <functional>

#include "chainfleet/v1/predict.pb.h"
#include "client/lib/client.h"
#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "core/formats/array.h"

namespace chainfleet {

// Predicts all rows of `inputs`, uint8 or float32 [n, ...], in requests and replies below the message limit. All of
// them read the job and version of the first reply, which `request` then names. Calls `on_part` with consecutive rows.
// Stops at the first error, also one of `on_part`.
absl::Status PredictRows(Client* client, const Array& inputs, v1::PredictRequest* request,
                         const std::function<absl::Status(Prediction part)>& on_part);

}  // namespace chainfleet
