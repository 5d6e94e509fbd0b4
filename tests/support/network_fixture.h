// Networks with random parameters over synthetic images.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/models/network_potential.h"

namespace chainfleet {

inline std::unique_ptr<Potential> MakeNetwork(const std::string& model,
                                              const std::shared_ptr<const ResidentDataset>& data, double precision = 25,
                                              double width = 1) {
  JobPlan plan;
  plan.spec.model.kind = BuiltinModel{.name = model, .width = width};
  plan.spec.prior.kind = GaussianPrior{precision};
  plan.dataset = data->description();
  plan.normalisation = data->description().normalisation;
  auto potential = MakeNetworkPotential(plan, data, Device());
  CHAINFLEET_CHECK(potential.ok()) << potential.status().ToString();
  return std::move(*potential);
}

// Returns values uniform in +-0.1; row r depends only on `seed` + r.
inline ThetaArena RandomTheta(const std::shared_ptr<const Layout>& layout, int64_t rows, uint64_t seed = 5) {
  ThetaArena theta(layout, Device());
  std::vector<float> values(layout->num_parameters());
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t word = RandomBlock(RngKey{seed + r}, RngStream::kInit, 0, static_cast<uint32_t>(i)).word[0];
      values[i] = 0.2f * UniformFloat(word) - 0.1f;
    }
    theta.AddRow();
    theta.WriteRow(r, values);
  }
  return theta;
}

// Returns row ids [rows, n], a different part of the data for each row.
inline std::vector<int64_t> SomeIds(int64_t rows, int64_t n, int64_t num_examples) {
  std::vector<int64_t> ids(rows * n);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 37 + 11) % num_examples;
  return ids;
}

}  // namespace chainfleet
