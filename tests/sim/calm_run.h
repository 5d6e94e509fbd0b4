// The draws of a chain that runs without faults.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/domain/worker_protocol.h"
#include "core/store/draw_codec/segment_codec.h"
#include "worker/numerics/dataset/resident_dataset.h"

namespace chainfleet {

// A chain's draws in order. Adjacent draws of one state are joined: a Metropolis chain counts a state up to the end of
// its lease, and the next lease continues the count.
using DrawPath = std::vector<Draw>;

bool SameState(const Draw& a, const Draw& b);  // to the byte

// Appends a draw, or adds its weight to the last draw if the state is the same.
void AppendDraw(const Draw& draw, DrawPath* path);

// Steps every chain of `plan` from start to end in one batch on the CPU, without worker, server or store. `dataset`:
// the plan's data set; null for analytic potentials. Aborts if the plan cannot be run.
std::map<int32_t, DrawPath> CalmRun(const JobPlan& plan, std::shared_ptr<const ResidentDataset> dataset = nullptr);

}  // namespace chainfleet
