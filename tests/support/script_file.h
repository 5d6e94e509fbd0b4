// TorchScript files as torch.jit.save writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chainfleet {

// Linear layers fc1, fc2, ... of `sizes` with ReLU between them, weights and biases zeros: the built-in mlp for {784,
// 200, 200, 10}. `body` replaces the code of forward; logits(x) in the body runs the layers. `tied`: fc2 shares the
// weight of fc1.
std::string ScriptedMlp(const std::vector<int64_t>& sizes, const std::string& body = "return self.logits(x)",
                        bool tied = false);

}  // namespace chainfleet
