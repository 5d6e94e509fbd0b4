// Chains of a network on a small data set, for tests that change parts of the plan.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/numerics/batch/chain_batch.h"
#include "worker/numerics/dataset/resident_dataset.h"

namespace chainfleet {

inline std::shared_ptr<JobPlan> NetworkPlan(const ModelSpec& model, const SamplerSpec& sampler,
                                            const ResidentDataset& data) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "parity-aaaaaa";
  plan->spec.name = "parity";
  plan->spec.model = model;
  plan->spec.dataset = data.description().name;
  plan->spec.sampler = sampler;
  const bool has_rate = sampler.is_microcanonical();
  plan->spec.schedule = {has_rate ? StepScale::kLearningRate : StepScale::kStepSize, ConstantSchedule{1e-5}};
  plan->spec.batch_size = 16;
  plan->spec.num_steps = 5;
  plan->spec.chains = 3;
  plan->dataset = data.description();
  plan->normalisation = data.description().normalisation;
  return plan;
}

// Returns a batch with chains [0, chains) at their starts.
inline std::unique_ptr<ChainBatch> BatchOf(const std::shared_ptr<const JobPlan>& plan,
                                           const std::shared_ptr<const ResidentDataset>& data,
                                           const std::string& device, int chains) {
  auto batch = ChainBatch::Create(plan, data, device);
  EXPECT_TRUE(batch.ok()) << batch.status();
  for (int chain = 0; chain < chains; ++chain) EXPECT_TRUE((*batch)->AddChain(chain, std::nullopt).ok());
  return *std::move(batch);
}

// Returns |a - b| / |b|.
inline double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    error += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(error / size);
}

}  // namespace chainfleet
