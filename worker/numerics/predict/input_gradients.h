// Gradients of predictions by the inputs: saliency, forces, Bayesian optimisation.
#pragma once

#include "core/base/status.h"
#include "core/domain/prediction.h"
#include "worker/numerics/predict/draw_stack.h"
#include "worker/numerics/predict/served_model.h"

namespace chainfleet {

// Adds the gradients of one chain and kind to its sums and members: of each class's probability, or of the mean, by the
// values of each row. REQUIRES: `stack` and `inputs` fit the model. INVALID_ARGUMENT: the outputs do not depend on the
// inputs, or not in a way that has derivatives. Throws LibTorch's exceptions.
absl::Status AddInputGradients(const ServedModel& model, const DrawStack& stack, const InputTensor& inputs,
                               PartialPrediction* sums);

}  // namespace chainfleet
