// Evaluations of predict.proto <-> core/domain.
#pragma once

#include "chainfleet/v1/predict.pb.h"
#include "core/domain/evaluation.h"

namespace chainfleet {

v1::Flatness ToProto(const Flatness& flatness);
Flatness FromProto(const v1::Flatness& proto);

v1::Evaluation ToProto(const Evaluation& evaluation);
Evaluation FromProto(const v1::Evaluation& proto);

}  // namespace chainfleet
