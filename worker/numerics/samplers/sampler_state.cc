#include "worker/numerics/samplers/sampler_state.h"

namespace chainfleet {

void MatchRows(const ThetaArena& like, ThetaArena* arena) {
  while (arena->rows() < like.rows()) arena->AddRow();
  while (arena->rows() > like.rows()) arena->RemoveRow(arena->rows() - 1);
}

ThetaArena& StepScratch::Arena(size_t i, const ThetaArena& like) {
  while (arenas.size() <= i) arenas.emplace_back(like.shared_layout(), like.device());
  MatchRows(like, &arenas[i]);
  return arenas[i];
}

}  // namespace chainfleet
