// A network that a user stored as a file. A chain's parameters replace those of the file. Buffers are constants as
// stored, and so are parameters that a job does not sample. Dropout and batch norm of a .pt2 file in training mode are
// those of a list of layers; otherwise U(theta) is a function of theta alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/domain/model_spec.h"
#include "worker/numerics/models/forward_mode.h"

namespace chainfleet {

struct ModelFile;

// Rows that predictions on a CPU give to Logits at once. A row has the same bits at the positions 0, `step`, 2 `step`,
// ... of a pass; the positions between are filled with copies of rows.
struct RowsOfPass {
  int64_t size = 1, step = 1;
};

// Thread-safe.
class StoredNetwork {
 public:
  virtual ~StoredNetwork() = default;

  const NetworkShape& shape() const { return shape_; }  // without layers

  // Outputs [C, n, K] for x [C, n, input_shape...] and `parameters[k]` [C, shape of tensor k...], on the device. C is 1
  // unless TakesChains(). Differentiable by autograd in parameters that require gradients. Throws LibTorch's
  // exceptions.
  virtual at::Tensor Logits(const std::vector<at::Tensor>& parameters, const at::Tensor& x,
                            const ForwardMode& mode = {}) const = 0;

  // True if Logits takes several chains in one call of each operator. Then C may change the rounding.
  virtual bool TakesChains() const { return false; }

  virtual RowsOfPass PassOfRows() const { return {}; }

  // True if a part of the network before its first sampled parameter may run once for each row. Logits is then
  // LogitsOf(parameters, Features(x)), up to rounding.
  virtual bool HasFeatures() const { return false; }
  // Tensors [n, ...] of rows x [n, input_shape...], contiguous.
  virtual std::vector<at::Tensor> Features(const at::Tensor& x) const { return {x}; }
  // Outputs [C, n, K] for features [C, n, ...], which it may write to.
  virtual at::Tensor LogitsOf(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& features,
                              const ForwardMode& mode = {}) const {
    return Logits(parameters, features.front(), mode);
  }

 protected:
  explicit StoredNetwork(NetworkShape shape) : shape_(std::move(shape)) {}

 private:
  const NetworkShape shape_;
};

// StoredNetwork::Logits of `script`, or the EagerLogits of `network` if there is none.
at::Tensor LogitsOf(const NetworkShape& network, const StoredNetwork* script, const std::vector<at::Tensor>& parameters,
                    const at::Tensor& x, const ForwardMode& mode);

// Views [1, shape...] of the tensors of a draw [size of the draw].
std::vector<at::Tensor> TensorsOfDraw(const std::vector<ParameterShape>& tensors, const at::Tensor& draw);

// The network of a stored model, from its file, with the parameters of its likelihood; null for other models. `network`
// gives inputs and outputs. INVALID_ARGUMENT: the model is a stored one but `module` is null or of another format; also
// the errors of ScriptedNetwork::Load, ConfinedNetwork::Load and ExportedNetwork::Load.
absl::StatusOr<std::shared_ptr<const StoredNetwork>> StoredNetworkOf(const ModelSpec& model, const ModelFile* module,
                                                                     const NetworkShape& network, at::Device device);

// The data that a stored network must fit, and where a violation is reported ("model.torchscript").
struct StoredNetworkUse {
  const char* path;
  std::vector<int64_t> input_shape;
  int64_t num_outputs = 0;
  at::Device device = at::kCPU;
  std::vector<ParameterShape> more;  // parameters that no output depends on; they come last

  absl::Status Refused(const std::string& why) const { return InvalidFields({{path, why}}); }
};

// Tensors with two axes or more, and biases of such weights, start at uniform(-1/sqrt(fan_in), 1/sqrt(fan_in)); others
// at the mean of their stored values. INVALID_ARGUMENT: a parameter is not float32 or is empty, or there is none.
absl::StatusOr<NetworkShape> ShapeOfStored(const std::vector<std::string>& names, const std::vector<at::Tensor>& values,
                                           const StoredNetworkUse& use);

// Tries `forward`, which takes [n, input_shape...]. INVALID_ARGUMENT: it fails, does not return float32 [n,
// num_outputs], returns different outputs for the same inputs, writes to one of `constants`, or makes one example's
// output depend on another's input.
absl::Status TryForward(const std::function<at::Tensor(const at::Tensor&)>& forward,
                        const std::vector<at::Tensor>& constants, const StoredNetworkUse& use);

// The last line of an interpreter's message; it follows the traceback and names the error.
std::string LastLineOf(const std::string& message);

// Returns `run()`, or a violation at `path` that begins with `what`. Out-of-memory exceptions are rethrown: they are no
// fault of the network.
template <typename Function>
auto TryStored(const char* path, const std::string& what, const Function& run) -> absl::StatusOr<decltype(run())> {
  const auto refused = [&](const std::string& message) {
    return InvalidFields({{path, absl::StrCat(what, ": ", LastLineOf(message))}});
  };
  try {
    return run();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    // The CPU allocator's error has no type of its own.
    if (std::string(error.what_without_backtrace()).find("can't allocate memory") != std::string::npos) throw;
    return refused(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return refused(error.what());
  }
}

}  // namespace chainfleet
