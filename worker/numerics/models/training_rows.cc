#include "worker/numerics/models/training_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "core/base/mutex.h"
#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/models/augmented_images.h"
#include "worker/numerics/models/stored_network.h"
#include "worker/numerics/tensors/single_threaded.h"

namespace chainfleet {

struct DeviceInputs {
  std::shared_ptr<const ResidentDataset> dataset;
  at::Tensor values;  // [N, row_size] as stored; on the CPU the data set's own memory
};

namespace {

// Rows of a pass. On a CPU, 128 rows take more memory and are at most a sixth faster.
constexpr int64_t kRowsOnCpu = 32, kRowsOnGpu = 128;

// One copy per device, shared by all potentials that use it at a time.
std::shared_ptr<const DeviceInputs> InputsOn(at::Device device, const std::shared_ptr<const ResidentDataset>& dataset) {
  struct Known {
    Mutex mutex;
    std::vector<std::weak_ptr<const DeviceInputs>> inputs CHAINFLEET_GUARDED_BY(mutex);
  };
  static auto* const known = new Known;
  MutexLock lock(&known->mutex);
  std::erase_if(known->inputs, [](const auto& inputs) { return inputs.expired(); });
  for (const auto& entry : known->inputs) {
    const auto inputs = entry.lock();
    if (inputs && inputs->dataset == dataset && inputs->values.device() == device) return inputs;
  }
  const bool bytes = dataset->description().input_type == InputType::kUint8;
  // from_blob takes a mutable pointer, but nothing writes through it.
  char* raw = const_cast<char*>(dataset->input_bytes().data());
  const at::Tensor stored =
      at::from_blob(raw, {dataset->stored_rows(), dataset->row_size()}, at::dtype(bytes ? at::kByte : at::kFloat));
  auto inputs = std::make_shared<const DeviceInputs>(DeviceInputs{dataset, stored.to(device)});
  known->inputs.push_back(inputs);
  return inputs;
}

// The augmentations of the images of chains [first, first + count), [count * n].
std::vector<ImageChange> Changes(const AugmentationSpec& augmentation, const BatchRows& batch, int64_t first,
                                 int64_t count) {
  std::vector<ImageChange> changes;
  for (int64_t chain = first; chain < first + count; ++chain) {
    const StepKey& step = batch.keys[chain];
    for (int64_t i = 0; i < batch.size; ++i) {
      changes.push_back(DrawImageChange(augmentation, step.key, step.step, static_cast<uint32_t>(i)));
    }
  }
  return changes;
}

}  // namespace

TrainingRows::TrainingRows(const std::shared_ptr<const ResidentDataset>& dataset, std::vector<int64_t> input_shape,
                           const NetworkSettings& settings, at::Device device)
    : input_shape_(std::move(input_shape)),
      augmentation_(settings.augmentation),
      shared_(InputsOn(device, dataset)),
      inputs_(shared_->values) {
  const InputRows rows(dataset->description().input_type, dataset->input_bytes().data(), input_shape_,
                       settings.normalisation);
  scale_ = at::tensor(rows.scale(), at::kFloat).to(device).unsqueeze(1);
  shift_ = at::tensor(rows.shift(), at::kFloat).to(device).unsqueeze(1);
}

TrainingRows::~TrainingRows() = default;

// Stored rows [chains * n, row_size] as the network's input [chains, n, input_shape...].
at::Tensor TrainingRows::Standardised(const at::Tensor& stored, int64_t chains) const {
  std::vector<int64_t> shape = {chains, stored.size(0) / chains};
  shape.insert(shape.end(), input_shape_.begin(), input_shape_.end());
  const at::Tensor values = stored.to(at::kFloat).view({stored.size(0), scale_.size(0), -1});
  return (values * scale_ + shift_).view(shape);
}

at::Tensor TrainingRows::Range(int64_t first, int64_t count) const {
  return Standardised(inputs_.narrow(0, first, count), 1);
}

at::Tensor TrainingRows::Batch(const at::Tensor& ids, const BatchRows& batch, int64_t first, int64_t count) const {
  const at::Tensor x = Standardised(inputs_.index_select(0, ids), count);
  if (!augmentation_.any() || batch.keys == nullptr) return x;
  return AugmentedImages(x.flatten(0, 1), Changes(augmentation_, batch, first, count)).view(x.sizes());
}

std::vector<at::Tensor> TrainingRows::Features(const StoredNetwork& network, int64_t most_bytes) const {
  if (!network.HasFeatures() || augmentation_.any()) return {};
  const c10::AutoGradMode autograd(false);
  const int64_t num_rows = inputs_.size(0);
  std::vector<at::Tensor> all;
  int64_t bytes = 0;
  for (const at::Tensor& of_row : network.Features(Range(0, 1).squeeze(0))) {
    std::vector<int64_t> shape = of_row.sizes().vec();
    shape[0] = num_rows;
    bytes += num_rows * static_cast<int64_t>(of_row.nbytes());
    if (bytes > most_bytes) return {};
    all.push_back(at::empty(shape, of_row.options()));
  }
  const int64_t of_pass = inputs_.is_cuda() ? kRowsOnGpu : kRowsOnCpu;
  const auto fill = [&](int64_t pass) {
    const c10::AutoGradMode no_autograd(false);  // a setting of the thread
    const int64_t first = pass * of_pass, count = std::min(of_pass, num_rows - first);
    const std::vector<at::Tensor> some = network.Features(Range(first, count).squeeze(0));
    for (size_t k = 0; k < all.size(); ++k) all[k].narrow(0, first, count).copy_(some[k]);
  };
  const int64_t passes = (num_rows + of_pass - 1) / of_pass;
  if (!inputs_.is_cuda()) {
    RunSingleThreaded(passes, fill);
  } else {
    for (int64_t pass = 0; pass < passes; ++pass) fill(pass);
  }
  return all;
}

}  // namespace chainfleet
