// Distributes the rows of an arena over LibTorch's threads.
#pragma once

#include <cstdint>
#include <functional>

namespace chainfleet {

// Number of chunks of a row of `num_parameters`. A chunk is a few microseconds of work, so that few rows fill all
// threads.
int64_t NumChunks(int64_t num_parameters);

// Runs `function(row, chunk, begin, end)` for every chunk [begin, end), in p, of every row.
void ForEachChunk(int64_t rows, int64_t num_parameters,
                  const std::function<void(int64_t row, int64_t chunk, int64_t begin, int64_t end)>& function);

}  // namespace chainfleet
