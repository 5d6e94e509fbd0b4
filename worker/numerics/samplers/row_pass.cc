#include "worker/numerics/samplers/row_pass.h"

#include "core/base/check.h"
#include "worker/numerics/kernels/cuda_module.h"

namespace chainfleet {

Late<PassOutcome> RunPass(Pass pass, std::initializer_list<ThetaArena*> arenas, const std::vector<ChainStep>& chains,
                          const std::function<void(int64_t row, float* s)>& scalars, RngStream stream, uint64_t label) {
  const ThetaArena& first = **arenas.begin();
  PassBuffers buffers;
  buffers.spans = first.layout().spans().data();
  buffers.num_spans = static_cast<int64_t>(first.layout().spans().size());
  buffers.num_parameters = first.layout().num_parameters();
  buffers.row_stride = first.row_stride();
  buffers.rows = first.rows();
  buffers.stream = stream;
  size_t next = 0;
  for (ThetaArena* arena : arenas) {
    CHAINFLEET_CHECK(arena->rows() == buffers.rows) << "arenas of " << arena->rows() << " and " << buffers.rows;
    buffers.arena[next++] = arena->data();
  }
  std::vector<PassRow> rows(buffers.rows);
  for (int64_t r = 0; r < buffers.rows; ++r) {
    rows[r].key = label == 0 ? chains[r].key : Fold(chains[r].key, label);
    rows[r].t = static_cast<uint64_t>(chains[r].t);
    rows[r].active = chains[r].active;
    if (rows[r].active) scalars(r, rows[r].s);
  }
  if (first.device().is_cuda()) return RunPassCuda(pass, buffers, rows.data(), first.device().cuda_index);
  std::vector<PassOutcome> outcomes(buffers.rows);
  RunPassCpu(pass, buffers, rows.data(), outcomes.data());
  return outcomes;
}

}  // namespace chainfleet
