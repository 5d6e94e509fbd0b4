// A .pt2 file (core/formats/exported_program.h) as a network: its operators run one after another through LibTorch's
// dispatcher, with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "worker/numerics/models/exported_steps.h"
#include "worker/numerics/models/stored_network.h"

namespace chainfleet {

class ExportedNetwork final : public StoredNetwork {
 public:
  // Loads the bytes of a .pt2 file, for inputs [n, input_shape...]. `more` parameters, which no output depends on, come
  // last. INVALID_ARGUMENT with a violation at model.exported: errors of ReadExportedProgram, ExportedSteps::Compile,
  // ShapeOfStored and TryForward; or the graph has other inputs.
  static absl::StatusOr<std::shared_ptr<const StoredNetwork>> Load(const std::string& bytes,
                                                                   const std::vector<int64_t>& input_shape,
                                                                   int64_t num_outputs, at::Device device,
                                                                   const std::vector<ParameterShape>& more = {});

  at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x) const override;

 private:
  ExportedNetwork(NetworkShape shape, ExportedSteps steps, std::vector<at::Tensor> tensors,
                  std::vector<size_t> parameters);

  const ExportedSteps steps_;
  const std::vector<at::Tensor> tensors_;  // the file's; parameters are replaced
  const std::vector<size_t> parameters_;   // their indices, in layout order
};

}  // namespace chainfleet
