#include "tests/sim/calm_run.h"

#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/domain/sweep_points.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {

bool SameState(const Draw& a, const Draw& b) {
  if (a.theta.size() != b.theta.size()) return false;
  for (size_t kind = 0; kind < a.theta.size(); ++kind) {
    const std::vector<float>&x = a.theta[kind], &y = b.theta[kind];
    if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

void AppendDraw(const Draw& draw, DrawPath* path) {
  if (path->empty() || !SameState(path->back(), draw)) return path->push_back(draw);
  path->back().step = draw.step;
  path->back().weight += draw.weight;
}

std::map<int32_t, DrawPath> CalmRun(const JobPlan& plan, std::shared_ptr<const ResidentDataset> dataset) {
  auto batch = ChainBatch::Create(std::make_shared<const JobPlan>(plan), std::move(dataset), "cpu");
  CHAINFLEET_CHECK(batch.ok()) << batch.status().ToString();
  std::map<int32_t, DrawPath> paths;
  for (int32_t i = 0; i < NumChains(plan.spec); ++i) {
    CHAINFLEET_CHECK((*batch)->AddChain(i, std::nullopt).ok()) << i;
    paths[i];
  }
  const auto take = [&](int32_t chain, Draw draw) { AppendDraw(std::move(draw), &paths[chain]); };
  while (!(*batch)->chains().empty()) {
    const auto reports = (*batch)->Step();
    CHAINFLEET_CHECK(reports.ok()) << reports.status().ToString();
    for (const RowReport& report : *reports) {
      if (report.draw_due) take(report.chain, (*batch)->TakeDraw(report.chain));
      if (report.finite && !report.done) continue;
      if (auto held = (*batch)->GiveUpHeld(report.chain)) take(report.chain, *std::move(held));
      (*batch)->RemoveChain(report.chain);
    }
  }
  return paths;
}

}  // namespace chainfleet
