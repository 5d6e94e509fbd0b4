// Runs a chain of a real batch from its present step to its end.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {

using Draws = std::vector<Draw>;

inline std::vector<float> Flat(const Draws& draws) {
  std::vector<float> flat;
  for (const Draw& draw : draws) {
    flat.push_back(static_cast<float>(draw.step));
    flat.push_back(static_cast<float>(draw.weight));
    for (const auto& kind : draw.theta) flat.insert(flat.end(), kind.begin(), kind.end());
  }
  return flat;
}

// Steps until every chain is done or not finite; returns the draws of chain `index`.
inline Draws RunChain(ChainBatch& batch, int32_t index, int steps = 1000) {
  Draws draws;
  for (int i = 0; i < steps; ++i) {
    const auto reports = batch.Step();
    EXPECT_TRUE(reports.ok()) << reports.status();
    bool any_left = false;
    for (const RowReport& report : *reports) {
      any_left |= report.finite && !report.done;
      if (report.chain != index) continue;
      if (report.draw_due) draws.push_back(batch.TakeDraw(index));
      if (!report.done) continue;
      if (auto held = batch.GiveUpHeld(index)) draws.push_back(*std::move(held));
    }
    if (!any_left) break;
  }
  return draws;
}

}  // namespace chainfleet
