// The draws of a chain that nothing ever happened to.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/domain/worker_protocol.h"
#include "core/store/draw_codec/segment_codec.h"
#include "worker/numerics/dataset/resident_dataset.h"

namespace chainfleet {

// A chain's draws in order. Draws of one state beside each other are one: a Metropolis chain counts a state up to the
// end of its lease, and the same state goes on counting under the next.
using DrawPath = std::vector<Draw>;

bool SameState(const Draw& a, const Draw& b);  // to the byte

// Appends, or adds to the last draw if the state is the same.
void AppendDraw(const Draw& draw, DrawPath* path);

// Every chain of `plan` stepped from start to end in one batch on the CPU, without worker, server or store. `dataset`:
// the plan's; null for analytic potentials. Aborts if the plan cannot be run.
std::map<int32_t, DrawPath> CalmRun(const JobPlan& plan, std::shared_ptr<const ResidentDataset> dataset = nullptr);

}  // namespace chainfleet
