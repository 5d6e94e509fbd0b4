// Chains of exported networks that share calls of operators on a CPU: no bit of a chain depends on another one.
#include "worker/numerics/models/chain_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/exported_files.h"
#include "tests/support/network_chains.h"
#include "tests/support/network_fixture.h"
#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/models/eager_potential.h"

namespace chainfleet {
namespace {

constexpr int64_t kRows = 64, kBatch = 16;

// Everything that a potential says of a chain.
struct Seen {
  std::vector<float> gradient;
  std::vector<double> numbers;  // energies, losses, squared norms
  bool operator==(const Seen& other) const {
    return std::memcmp(gradient.data(), other.gradient.data(), gradient.size() * sizeof(float)) == 0 &&
           numbers == other.numbers;
  }
};

class ChainLanes : public ::testing::TestWithParam<ExportedFile> {
 protected:
  ChainLanes() {
    lanes_ = WithLanes(Make(ChainBatching::kInLanes), chains_);
    apart_ = Make(ChainBatching::kApart);
  }

  std::unique_ptr<Potential> Make(ChainBatching batching) const {
    return MakeEagerPotential(network_->shape(), layout_, data_,
                              {data_->description().normalisation, {}, 25, CategoricalLikelihood(), {}}, Device(),
                              batching, network_);
  }

  // Evaluates the chains, each with its own theta, examples, keys and prior. `broken`: a chain whose theta is not
  // finite. `known`: the potential knows which chains they are.
  std::vector<Seen> Evaluate(Potential* potential, const std::vector<int32_t>& chains, int32_t broken = -1,
                             bool known = true) {
    *chains_ = known ? chains : std::vector<int32_t>();
    ThetaArena theta(layout_, Device()), gradient(layout_, Device());
    std::vector<int64_t> ids;
    std::vector<StepKey> keys;
    std::vector<double> precisions;
    for (size_t row = 0; row < chains.size(); ++row) {
      theta.AddRow();
      gradient.AddRow();
      const int32_t chain = chains[row];
      std::vector<float> values = RandomTheta(layout_, 1, static_cast<uint64_t>(chain)).ReadRow(0);
      if (chain == broken) values.assign(values.size(), std::numeric_limits<float>::quiet_NaN());
      theta.WriteRow(static_cast<int64_t>(row), values);
      for (int64_t i = 0; i < kBatch; ++i) ids.push_back((chain * 7 + i * 37) % kRows);
      keys.push_back({RngKey{static_cast<uint64_t>(chain)}, 3});
      precisions.push_back(chain + 1);
    }
    std::vector<double> energy(chains.size()), losses(chains.size() * kBatch), norms(losses.size());
    const BatchRows batch = {
        .ids = ids.data(), .size = kBatch, .keys = keys.data(), .prior_precisions = precisions.data()};
    potential->Losses(theta, batch, losses.data());
    const bool has_norms = potential->EvaluateWithNorms(theta, batch, &gradient, energy.data(), norms.data());
    if (!has_norms) potential->Evaluate(theta, batch, &gradient, energy.data());
    std::vector<Seen> seen(chains.size());
    for (size_t row = 0; row < chains.size(); ++row) {
      seen[row] = {gradient.ReadRow(static_cast<int64_t>(row)), {energy[row]}};
      for (int64_t i = 0; i < kBatch; ++i) {
        seen[row].numbers.push_back(losses[row * kBatch + static_cast<size_t>(i)]);
        if (has_norms) seen[row].numbers.push_back(norms[row * kBatch + static_cast<size_t>(i)]);
      }
    }
    return seen;
  }

  const std::shared_ptr<const StoredNetwork> network_ = GetParam().Load();
  const std::shared_ptr<const ResidentDataset> data_ = GetParam().Data(kRows);
  const std::shared_ptr<const Layout> layout_ = std::make_shared<const Layout>(network_->shape().parameters);
  const std::shared_ptr<std::vector<int32_t>> chains_ = std::make_shared<std::vector<int32_t>>();
  std::unique_ptr<Potential> lanes_, apart_;
};

TEST_P(ChainLanes, KeepTheBitsOfAChainWhateverRunsBesideIt) {
  ASSERT_TRUE(network_->TakesChains());
  std::vector<int32_t> all(21);
  for (int32_t chain = 0; chain < 21; ++chain) all[static_cast<size_t>(chain)] = chain;
  const std::vector<Seen> together = Evaluate(lanes_.get(), all);
  const std::vector<std::vector<int32_t>> others = {{0}, {5}, {20}, {5, 13, 0}, {13, 5, 21, 29, 4}, {4, 12, 20, 3}};
  for (const std::vector<int32_t>& some : others) {
    const std::vector<Seen> seen = Evaluate(lanes_.get(), some);
    for (size_t row = 0; row < some.size(); ++row) {
      if (some[row] >= 21) continue;
      EXPECT_EQ(seen[row], together[static_cast<size_t>(some[row])]) << "chain " << some[row];
    }
  }
  const std::vector<Seen> with_broken = Evaluate(lanes_.get(), all, 6);
  EXPECT_TRUE(std::isnan(with_broken[6].numbers[0]));
  for (const size_t chain : {5, 7, 14}) EXPECT_EQ(with_broken[chain], together[chain]) << "chain " << chain;
  const std::vector<Seen> unknown = Evaluate(lanes_.get(), all, -1, false);
  EXPECT_EQ(Evaluate(lanes_.get(), {6}, -1, false)[0], unknown[6]) << "rows of chains that it does not know, too";
}

TEST_P(ChainLanes, AgreeWithChainsAlone) {
  const std::vector<int32_t> chains = {3, 4, 11, 64};
  const std::vector<Seen> lanes = Evaluate(lanes_.get(), chains), apart = Evaluate(apart_.get(), chains);
  for (size_t row = 0; row < chains.size(); ++row) {
    ASSERT_EQ(lanes[row].numbers.size(), apart[row].numbers.size());
    for (size_t i = 0; i < lanes[row].numbers.size(); ++i) {
      EXPECT_NEAR(lanes[row].numbers[i], apart[row].numbers[i], 1e-5 + 1e-4 * std::abs(apart[row].numbers[i]));
    }
    EXPECT_LT(RelativeDistance(lanes[row].gradient, apart[row].gradient), 1e-4);
  }
}

// The last layer over kept features, which calls with several chains share, too.
TEST_P(ChainLanes, KeepTheBitsOfAHead) {
  const auto head = GetParam().LoadHead("cpu");
  ASSERT_TRUE(head->HasFeatures());
  const auto layout = std::make_shared<const Layout>(head->shape().parameters);
  const auto potential =
      WithLanes(MakeEagerPotential(head->shape(), layout, data_,
                                   {data_->description().normalisation, {}, 25, CategoricalLikelihood(), {}}, Device(),
                                   ChainBatching::kInLanes, head),
                chains_);
  const auto gradients = [&](const std::vector<int32_t>& chains) {
    *chains_ = chains;
    ThetaArena theta(layout, Device()), gradient(layout, Device());
    for (size_t row = 0; row < chains.size(); ++row) {
      theta.AddRow();
      gradient.AddRow();
      theta.WriteRow(static_cast<int64_t>(row), RandomTheta(layout, 1, static_cast<uint64_t>(chains[row])).ReadRow(0));
    }
    std::vector<int64_t> ids;
    for (const int32_t chain : chains) {
      for (int64_t i = 0; i < kBatch; ++i) ids.push_back((chain * 7 + i * 37) % kRows);
    }
    std::vector<double> energy(chains.size());
    potential->Evaluate(theta, {.ids = ids.data(), .size = kBatch}, &gradient, energy.data());
    return gradient.ReadRow(0);
  };
  const std::vector<float> alone = gradients({3}), beside = gradients({3, 4, 5, 11, 30});
  EXPECT_EQ(std::memcmp(alone.data(), beside.data(), alone.size() * sizeof(float)), 0);
}

std::vector<ExportedFile> Networks() {
  std::vector<ExportedFile> files = ExportedFiles();
  std::erase_if(files, [](const ExportedFile& file) { return !file.batches; });
  return files;
}

INSTANTIATE_TEST_SUITE_P(Networks, ChainLanes, ::testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param.name; });

const ExportedFile& FileCalled(const std::string& name) {
  return *std::ranges::find(ExportedFiles(), name, &ExportedFile::name);
}

TEST(TakesLanes, IsAFunctionOfTheJobAndTheShapes) {
  const auto takes = [](const std::string& network, int64_t batch_size, const SamplerSpec& sampler = {SgldSpec{}}) {
    return TakesLanes(*FileCalled(network).Load(), {.sampler = sampler, .batch_size = batch_size, .vmap = true});
  };
  EXPECT_TRUE(takes("mlp", 256));
  EXPECT_FALSE(takes("mlp", 257)) << "16 outputs of 257 rows";
  EXPECT_TRUE(takes("conv", 16));
  EXPECT_FALSE(takes("conv", 17));
  EXPECT_FALSE(takes("gru", 4)) << "an operator without a rule for several chains";
  EXPECT_FALSE(takes("mlp", 32, {GradientUncertaintySpec{}})) << "its norms take one example at a time";
  EXPECT_FALSE(TakesLanes(*FileCalled("mlp").Load(), {.batch_size = 32})) << "it was not asked for";
}

// Chain 9, alone, beside others, and resumed beside others; with its run report.
TEST(ChainsInLanes, KeepTheirDrawsWhereverTheyRun) {
  const ExportedFile& file = FileCalled("attention");
  const auto data = file.Data(kRows);
  auto plan = NetworkPlan({StoredNetworkModel{"mine"}}, {SgldSpec{}}, *data);
  plan->spec.num_steps = 6;
  plan->spec.vmap = true;
  const auto batch_of = [&](const std::vector<int32_t>& chains, const std::optional<std::string>& resume_point = {}) {
    auto batch = ChainBatch::Create(plan, data, "cpu", FileOf(file.Read()));
    EXPECT_TRUE(batch.ok()) << batch.status();
    for (const int32_t chain : chains) {
      EXPECT_TRUE((*batch)->AddChain(chain, chain == 9 ? resume_point : std::nullopt).ok());
    }
    return *std::move(batch);
  };
  const auto advance = [](ChainBatch& batch, int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(batch.Step().ok());
  };
  const auto alone = batch_of({9}), beside = batch_of({0, 1, 9, 17, 25, 3});
  advance(*alone, 6);
  advance(*beside, 3);
  const auto resumed = batch_of({8, 33, 9}, beside->SaveResumePoint(9));
  beside->RemoveChain(0);  // another row takes its place
  advance(*beside, 3);
  advance(*resumed, 3);
  EXPECT_EQ(beside->TakeDraw(9).theta, alone->TakeDraw(9).theta);
  EXPECT_EQ(resumed->TakeDraw(9).theta, alone->TakeDraw(9).theta);
  EXPECT_EQ(resumed->SaveResumePoint(9), alone->SaveResumePoint(9));
  EXPECT_TRUE(TakesLanes(*file.Load(), plan->spec)) << "chains shared their calls";
}

}  // namespace
}  // namespace chainfleet
