// MC dropout: what a draw is, and what a training step does, of a network with convolutions.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "tests/support/plain_network.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/batch/checkpoint_codec.h"

namespace chainfleet {
namespace {

constexpr double kRate = 0.4, kAlpha = 1e-3, kPrecision = 3;
constexpr int64_t kExamples = 12;

// Two convolutions and two linear layers over small images; every batch is all of the data.
struct Fixture {
  explicit Fixture(int64_t num_steps) {
    plan->job = "dropout-aaaaaa";
    JobSpec& spec = plan->spec;
    spec.name = "dropout";
    spec.model.kind = LayeredModel{layers};
    spec.dataset = "synthetic";
    spec.prior.kind = GaussianPrior{kPrecision};
    spec.sampler.kind = McDropoutSpec{.rate = kRate, .momentum = 0, .draws = 20};
    spec.schedule = {StepScale::kStepSize, ConstantSchedule{kAlpha}};
    spec.batch_size = kExamples;
    spec.num_steps = num_steps;
    plan->dataset = data->description();
    plan->normalisation = data->description().normalisation;
    auto created = ChainBatch::Create(plan, data, "cpu");
    CHAINFLEET_CHECK(created.ok()) << created.status().ToString();
    batch = std::move(*created);
    CHAINFLEET_CHECK(batch->AddChain(0, std::nullopt).ok());
  }

  // An arena as it stands: 0 theta, 2 the draw.
  std::vector<float> Arena(size_t i) const { return DecodeCheckpoint(batch->SaveResumePoint(0))->arenas[i]; }

  // The factor of each parameter; 1 where theta is zero.
  static std::vector<double> Factors(const std::vector<float>& theta, const std::vector<float>& draw) {
    std::vector<double> factors;
    for (size_t p = 0; p < theta.size(); ++p) factors.push_back(theta[p] == 0 ? 1 : double(draw[p]) / theta[p]);
    return factors;
  }

  // Gradient of -log likelihood over all data at `theta`, in double.
  std::vector<double> Gradient(const std::vector<float>& theta) const {
    testing::PlainNetwork plain;
    for (const ParameterShape& parameter : batch->parameters()) {
      std::vector<double> values(theta.begin() + parameter.offset,
                                 theta.begin() + parameter.offset + NumValues(parameter.shape));
      plain.parameters.push_back(at::tensor(values, at::kDouble).view(parameter.shape).requires_grad_(true));
    }
    std::vector<double> x;
    for (const char pixel : data->input_bytes()) x.push_back((static_cast<uint8_t>(pixel) / 255.0 - 0.5) / 0.29);
    const auto& stored = std::get<std::vector<int32_t>>(data->targets());
    const std::vector<int64_t> labels(stored.begin(), stored.end());
    const at::Tensor logits = plain.Logits(layers, at::tensor(x, at::kDouble).view({kExamples, 1, 8, 8}));
    (-at::log_softmax(logits, 1).gather(1, at::tensor(labels, at::kLong).view({-1, 1})).sum()).backward();
    std::vector<double> gradient;
    for (const at::Tensor& parameter : plain.parameters) {
      const at::Tensor flat = parameter.grad().flatten().contiguous();
      gradient.insert(gradient.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    }
    return gradient;
  }

  const LayerList layers = {{ConvLayer{.out_channels = 6}},
                            {ReluLayer{}},
                            {ConvLayer{.out_channels = 4}},
                            {ReluLayer{}},
                            {DropoutLayer{0.5}},
                            {LinearLayer{.outputs = 9}},
                            {ReluLayer{}},
                            {LinearLayer{}}};
  const std::shared_ptr<const ResidentDataset> data = SyntheticImages(kExamples, {1, 8, 8}, 5);
  const std::shared_ptr<JobPlan> plan = std::make_shared<JobPlan>();
  std::unique_ptr<ChainBatch> batch;
};

// Linear in each input unit: a column of a weight at zero is that unit dropped, at 1 / (1 - rate) it is kept.
TEST(McDropout, ADrawIsTheNetworkWithUnitsOfEachLayerButTheFirstDropped) {
  Fixture chain(1);
  ASSERT_TRUE(chain.batch->Step().ok());
  const std::vector<float> theta = chain.Arena(0);
  int64_t dropped = 0, units = 0;
  for (int i = 0; i < 20; ++i) {
    const auto reports = chain.batch->Step();
    ASSERT_TRUE(reports.ok() && reports->front().draw_due);
    const std::vector<double> factors = Fixture::Factors(theta, chain.batch->TakeDraw(0).theta[0]);
    for (const ParameterShape& parameter : chain.batch->parameters()) {
      const double* factor = factors.data() + parameter.offset;
      const bool masked = parameter.shape.size() > 1 && parameter.offset > 0;
      const int64_t outputs = parameter.shape[0], columns = masked ? parameter.shape[1] : 1;
      const int64_t kernel = NumValues(parameter.shape) / outputs / columns;
      for (int64_t j = 0; j < columns; ++j) {
        const double of_unit = masked ? factor[j * kernel] : 1;
        ASSERT_TRUE(!masked || of_unit == 0 || std::abs(of_unit - 1 / (1 - kRate)) < 1e-6) << parameter.name;
        for (int64_t o = 0; o < outputs; ++o) {
          for (int64_t p = 0; p < kernel; ++p) {
            ASSERT_NEAR(factor[(o * columns + j) * kernel + p], of_unit, 1e-6) << parameter.name;
          }
        }
        units += masked;
        dropped += of_unit == 0;
      }
    }
  }
  EXPECT_EQ(units, 20 * (6 + 64 + 9));
  EXPECT_NEAR(static_cast<double>(dropped) / units, kRate, 4 * std::sqrt(kRate * (1 - kRate) / units));
}

TEST(McDropout, AStepDescendsTheMaskedNetworkAndThePriorOfTheUnmaskedOne) {
  Fixture chain(3);
  const std::vector<float> before = chain.Arena(0);
  ASSERT_TRUE(chain.batch->Step().ok());
  const std::vector<float> after = chain.Arena(0), masked = chain.Arena(2);
  const std::vector<double> factors = Fixture::Factors(before, masked), gradient = chain.Gradient(masked);
  double moved = 0;
  for (size_t p = 0; p < before.size(); ++p) {
    const double wanted = before[p] - kAlpha * (factors[p] * gradient[p] + kPrecision * before[p]);
    ASSERT_NEAR(after[p], wanted, 1e-6) << p;
    moved = std::max(moved, std::abs(wanted - before[p]));
  }
  EXPECT_GT(moved, 1e-3);
}

}  // namespace
}  // namespace chainfleet
