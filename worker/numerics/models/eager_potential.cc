#include "worker/numerics/models/eager_potential.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <vector>

#include "worker/numerics/dataset/input_rows.h"
#include "worker/numerics/models/eager_network.h"
#include "worker/numerics/tensor_view.h"

namespace chainfleet {
namespace {

at::Device TorchDevice(Device device) {
  return device.is_cuda() ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.cuda_index)) : at::kCPU;
}

void CopyToHost(const at::Tensor& values, double* out) {
  const at::Tensor host = values.to(at::kDouble).cpu().contiguous();
  std::copy_n(host.const_data_ptr<double>(), host.numel(), out);
}

class EagerPotential final : public Potential {
 public:
  EagerPotential(Architecture architecture, std::shared_ptr<const Layout> layout,
                 std::shared_ptr<const ResidentDataset> dataset, const Normalisation& normalisation,
                 double prior_precision, Device device)
      : architecture_(std::move(architecture)),
        layout_(std::move(layout)),
        dataset_(std::move(dataset)),
        prior_precision_(prior_precision),
        device_(TorchDevice(device)) {
    const Dataset& data = dataset_->description();
    const bool bytes = data.input_type == InputType::kUint8;
    // from_blob takes a mutable pointer; nothing writes through it.
    char* raw = const_cast<char*>(dataset_->input_bytes().data());
    inputs_ = at::from_blob(raw, {data.num_rows, dataset_->row_size()}, at::dtype(bytes ? at::kByte : at::kFloat))
                  .to(device_);
    labels_ = at::from_blob(const_cast<int32_t*>(dataset_->labels().data()), {data.num_rows}, at::dtype(at::kInt))
                  .to(device_, at::kLong);
    const InputRows rows(data.input_type, raw, architecture_.input_shape, normalisation);
    scale_ = at::tensor(rows.scale(), at::kFloat).to(device_).unsqueeze(1);
    shift_ = at::tensor(rows.shift(), at::kFloat).to(device_).unsqueeze(1);
  }

  const std::shared_ptr<const Layout>& layout() const override { return layout_; }
  int64_t num_examples() const override { return dataset_->description().num_rows; }
  double prior_precision() const override { return prior_precision_; }

  void Evaluate(const ThetaArena& theta, const BatchRows& batch, ThetaArena* gradient, double* energy) override {
    const c10::AutoGradMode autograd(true);
    std::vector<at::Tensor> parameters;
    for (size_t k = 0; k < layout_->spans().size(); ++k) {
      parameters.push_back(ParameterView(theta, static_cast<int64_t>(k)).detach().requires_grad_(true));
    }
    const double scale = static_cast<double>(num_examples()) / static_cast<double>(batch.size);
    const at::Tensor losses = BatchLosses(parameters, theta.rows(), batch);
    (losses.sum() * scale).backward();
    for (size_t k = 0; k < parameters.size(); ++k) {
      ParameterView(*gradient, static_cast<int64_t>(k)).copy_(parameters[k].grad());
    }
    const at::Tensor squares = RowsView(theta).to(at::kDouble).square().sum(1);
    CopyToHost(losses.detach().to(at::kDouble).sum(1) * scale + squares * (prior_precision_ / 2), energy);
  }

  void Losses(const ThetaArena& theta, const BatchRows& batch, double* losses) override {
    const c10::AutoGradMode autograd(false);
    std::vector<at::Tensor> parameters;
    for (size_t k = 0; k < layout_->spans().size(); ++k) {
      parameters.push_back(ParameterView(theta, static_cast<int64_t>(k)));
    }
    CopyToHost(BatchLosses(parameters, theta.rows(), batch), losses);
  }

  void LogPrior(const ThetaArena& theta, double* log_prior) override {
    CopyToHost(RowsView(theta).to(at::kDouble).square().sum(1) * (-prior_precision_ / 2), log_prior);
  }

 private:
  // [C, n] on the device.
  at::Tensor BatchLosses(const std::vector<at::Tensor>& parameters, int64_t chains, const BatchRows& batch) const {
    const at::Tensor ids =
        at::from_blob(const_cast<int64_t*>(batch.ids), {chains * batch.size}, at::dtype(at::kLong)).to(device_);
    const at::Tensor values = inputs_.index_select(0, ids).to(at::kFloat).view({ids.size(0), scale_.size(0), -1});
    std::vector<int64_t> shape = {chains, batch.size};
    shape.insert(shape.end(), architecture_.input_shape.begin(), architecture_.input_shape.end());
    const at::Tensor logits = EagerLogits(architecture_, parameters, (values * scale_ + shift_).view(shape));
    const at::Tensor labels = labels_.index_select(0, ids).view({chains, batch.size, 1});
    return -at::log_softmax(logits, -1).gather(-1, labels).squeeze(-1);
  }

  Architecture architecture_;
  std::shared_ptr<const Layout> layout_;
  std::shared_ptr<const ResidentDataset> dataset_;
  double prior_precision_;
  at::Device device_;
  at::Tensor inputs_, labels_;  // [N, row_size] as stored, [N]
  at::Tensor scale_, shift_;    // [channels, 1]
};

}  // namespace

std::unique_ptr<Potential> MakeEagerPotential(Architecture architecture, std::shared_ptr<const Layout> layout,
                                              std::shared_ptr<const ResidentDataset> dataset,
                                              const Normalisation& normalisation, double prior_precision,
                                              Device device) {
  return std::make_unique<EagerPotential>(std::move(architecture), std::move(layout), std::move(dataset), normalisation,
                                          prior_precision, device);
}

}  // namespace chainfleet
