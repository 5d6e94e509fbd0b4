// How the rows of an arena are shared out over LibTorch's threads.
#pragma once

#include <cstdint>
#include <functional>

namespace chainfleet {

// Chunks of a row of `num_parameters`: a few microseconds of work each, so that few rows still fill all threads.
int64_t NumChunks(int64_t num_parameters);

// Runs `function(row, chunk, begin, end)` for every chunk [begin, end), in p, of every row.
void ForEachChunk(int64_t rows, int64_t num_parameters,
                  const std::function<void(int64_t row, int64_t chunk, int64_t begin, int64_t end)>& function);

}  // namespace chainfleet
