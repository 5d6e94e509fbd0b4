// Compares predictions with stacked draws, as on a GPU, with predictions of the CPU, draw by draw.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/rng_key.h"
#include "worker/numerics/arena/tensor_view.h"
#include "worker/numerics/dataset/resident_dataset.h"
#include "worker/numerics/predict/draw_pass.h"
#include "worker/numerics/predict/stack_cache.h"

namespace chainfleet {

struct BothWays {
  std::unique_ptr<Predictor> stacked, blocks;
  int64_t num_parameters = 0, draw_size = 0;
};

inline BothWays Predictors(const ModelSpec& model, const Dataset& data, Device device) {
  auto plan = std::make_shared<PredictPlan>();
  plan->job = "parity-aaaaaa";
  plan->model = model;
  plan->input_shape = data.input_shape;
  plan->targets = data.targets;
  plan->normalisation = data.normalisation;
  const auto served = MakeServedModel(plan, nullptr);
  CHAINFLEET_CHECK(served.ok()) << served.status().ToString();
  return {MakePredictor(*served, MakeStackedPass(*served, std::make_shared<StackCache>(TorchDevice(device)))),
          MakePredictor(*served, MakeBlockPass(*served)), NumParameters((*served)->network.parameters),
          (*served)->draw_size};
}

// Returns parameters uniform in +-0.25, statistics of batch norm 0.5 higher, and weights of three kinds.
inline DrawStack SomeDraws(int64_t draws, const BothWays& both, int32_t chain) {
  DrawStack stack;
  stack.chain = {"parity-aaaaaa", chain};
  for (int64_t s = 0; s < draws; ++s) {
    stack.weights.push_back(1 + 0.25 * static_cast<double>(s % 3));
    std::vector<float> theta(both.draw_size);
    for (size_t i = 0; i < theta.size(); ++i) {
      const float middle = static_cast<int64_t>(i) < both.num_parameters ? 0 : 0.5f;
      const RngKey key{static_cast<uint64_t>(1000 * chain + s)};
      const uint32_t word = RandomBlock(key, RngStream::kInit, 0, static_cast<uint32_t>(i)).word[0];
      theta[i] = middle + 0.5f * UniformFloat(word) - 0.25f;
    }
    stack.theta.push_back(std::make_shared<const std::vector<float>>(std::move(theta)));
    stack.ids.push_back({"the object of chain " + std::to_string(chain), s});
  }
  return stack;
}

template <typename T>
void ExpectClose(const std::vector<T>& here, const std::vector<T>& there, const char* what) {
  ASSERT_EQ(here.size(), there.size()) << what;
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-4 * (1 + std::abs(there[i]))) << what << i;
}

// Rounding may change the largest class when two classes are equal: for one row in a hundred at most.
inline void ExpectSameVotes(const ClassSums& here, const ClassSums& there) {
  ASSERT_EQ(here.votes.size(), there.votes.size());
  double other = 0, all = 0;
  for (size_t i = 0; i < here.votes.size(); ++i) {
    other += std::abs(here.votes[i] - there.votes[i]);
    all += there.votes[i];
  }
  EXPECT_LE(other, 0.01 * all);
  ASSERT_EQ(here.draw_hits.size(), there.draw_hits.size());
  for (size_t s = 0; s < here.draw_hits.size(); ++s) EXPECT_NEAR(here.draw_hits[s], there.draw_hits[s], 1) << s;
}

inline void ExpectSameMembers(const Members& here, const Members& there) {
  EXPECT_EQ(here.weights, there.weights);
  ASSERT_EQ(here.outputs.index(), there.outputs.index());
  const auto expect = [&]<typename T>(const T& outputs) {
    for (const auto& array : T::kArrays) {
      ExpectClose(outputs.*array.values, std::get<T>(there.outputs).*array.values, array.name);
    }
  };
  std::visit(expect, here.outputs);
}

inline void ExpectSameSums(const ClassSums& here, const ClassSums& there) {
  ExpectClose(here.sum_wp, there.sum_wp, "probability");
  ExpectClose(here.sum_wp2, there.sum_wp2, "its square");
  ExpectClose(here.sum_wh, there.sum_wh, "entropy");
  ExpectSameVotes(here, there);
}

inline void ExpectSameSums(const NumberSums& here, const NumberSums& there) {
  ExpectClose(here.sum_wm, there.sum_wm, "mean");
  ExpectClose(here.sum_wm2, there.sum_wm2, "its square");
  ExpectClose(here.sum_wv, there.sum_wv, "variance");
  ExpectClose(here.log_sum_wd, there.log_sum_wd, "density");
  ExpectClose(here.sum_wc, there.sum_wc, "distribution");
}

inline void ExpectSameSums(const PartialPrediction& here, const PartialPrediction& there) {
  EXPECT_EQ(here.chain, there.chain);
  EXPECT_EQ(here.num_draws, there.num_draws);
  EXPECT_EQ(here.sum_w, there.sum_w);
  ASSERT_EQ(here.targets(), there.targets());
  if (std::holds_alternative<ClassSums>(here.sums)) {
    ExpectSameSums(here.classes(), there.classes());
  } else {
    ExpectSameSums(here.numbers(), there.numbers());
  }
  ExpectClose(here.draw_log_likelihood, there.draw_log_likelihood, "log likelihood");
  ASSERT_TRUE(here.members && there.members);
  ExpectSameMembers(*here.members, *there.members);
}

// Predicts rows of `data` with stacks of 1, `draws` and 3 draws on `device`.
inline void ExpectPredictorParity(const ModelSpec& model, const ResidentDataset& data, int64_t rows, int64_t draws,
                                  const Corruption* corruption = nullptr, Device device = {}) {
  const BothWays both = Predictors(model, data.description(), device);
  const std::vector<DrawStack> stacks = {SomeDraws(1, both, 0), SomeDraws(draws, both, 1), SomeDraws(3, both, 2)};
  for (int again = 0; again < 2; ++again) {
    const auto here = both.stacked->PredictRows(stacks, data, 2, rows, true, true, corruption);
    const auto there = both.blocks->PredictRows(stacks, data, 2, rows, true, true, corruption);
    ASSERT_TRUE(here.ok()) << here.status();
    ASSERT_TRUE(there.ok()) << there.status();
    ASSERT_EQ(here->size(), stacks.size());
    for (size_t i = 0; i < stacks.size(); ++i) ExpectSameSums((*here)[i], (*there)[i]);
  }
}

}  // namespace chainfleet
