// Categorical likelihood over images in lanes (lanes.h): log-sum-exp with the largest logit subtracted, float32.
#pragma once

#include <cstdint>

namespace chainfleet {

// From logits [classes][16]: probability [classes][16] and log_normaliser[16], the log-sum-exp of the logits. The
// output may overwrite the logits. log p(k) = logit_k - log_normaliser.
void Softmax(const float* logits, int64_t classes, float* probability, float* log_normaliser);

}  // namespace chainfleet
