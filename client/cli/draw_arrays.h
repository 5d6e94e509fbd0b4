// The draws of an export as arrays over chains and draws. They are spooled to a file, so that only one segment is in
// memory, whatever the job's size.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/lib/draw_reader.h"
#include "core/base/spool_file.h"
#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/formats/streamed_array.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {

// Number of rows of each chain: its draws or, with `repeat`, each draw as often as its weight says.
std::map<int32_t, int64_t> RowsOf(const std::vector<v1::SegmentRecord>& segments, bool repeat);

// Stacks arrays [draw, ...] of the chains to one [chain, draw, ...] with the first `rows` draws of each. A shorter
// chain is filled with NaN. REQUIRES: chains.size() > 0; chains of one name, type and shape of a draw; no shorter chain
// unless they are float32.
StreamedArray StackChains(std::vector<StreamedArray> chains, int64_t rows, std::vector<std::string> dimensions);

class DrawArrays {
 public:
  // `rows` come from RowsOf and bound the rows of each chain. The spool is an unnamed file in `folder`.
  // FAILED_PRECONDITION, naming the folder.
  static absl::StatusOr<DrawArrays> Make(const std::string& folder, std::map<int32_t, int64_t> rows, bool repeat);

  // Adds the segments of a chain in order. FAILED_PRECONDITION: a weight is not a whole number, so it cannot be a
  // count. DATA_LOSS: there are more rows than announced. RESOURCE_EXHAUSTED: the disk is full.
  absl::Status Add(const CheckedSegment& segment);

  // Number of rows added for each chain that has rows, in order.
  const std::map<int32_t, int64_t>& rows() const { return done_; }
  // The shape of each parameter of each kind, "theta/NAME", in the order of the segments.
  std::vector<std::pair<std::string, std::vector<int64_t>>> parameters() const;

  // "theta/NAME" [chain, draw, ...], NaN beyond the end of a chain that is shorter than the longest; `step` [chain,
  // draw], -1 there; `weight` [chain, draw], NaN there, unless draws are repeated; `chain` and `draws` [chain].
  std::vector<StreamedArray> Stacked() const;
  // The parameters of one kind, under their names alone, [chain, draw, ...], with the newest `rows` of each chain.
  // REQUIRES: each chain has as many.
  std::vector<StreamedArray> Newest(DrawKind kind, int64_t rows) const;
  // The steps of the rows of a chain. REQUIRES: it has rows.
  const std::vector<int64_t>& steps(int32_t chain) const { return columns_.at(chain).steps; }
  // The arrays of one chain, without the axis of chains.
  std::vector<StreamedArray> OfChain(int32_t chain) const;

 private:
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;         // shape of one draw
    int64_t row_bytes = 0, offset = 0;  // in the spool: [chains, longest, row_bytes]
  };
  struct Rows {
    std::vector<int64_t> steps;
    std::vector<double> weights;
  };
  DrawArrays(SpoolFile spool, std::map<int32_t, int64_t> rows, bool repeat);

  absl::Status Plan(const std::vector<TensorView>& tensors);
  absl::StatusOr<std::vector<int64_t>> CopiesOf(const std::vector<Draw>& draws) const;
  // Writes each row in `data` as often as `copies` says, from row `row` of the spool on.
  absl::Status Write(const Parameter& parameter, int64_t row, const char* data, const std::vector<int64_t>& copies);
  // The rows of the chain from `first` on.
  StreamedArray RowsOfChain(const Parameter& parameter, int32_t chain, int64_t first) const;
  // `rows` of each chain: the first, or the newest.
  StreamedArray Stack(const Parameter& parameter, int64_t rows, bool newest) const;

  SpoolFile spool_;
  std::map<int32_t, int64_t> announced_, done_;
  std::map<int32_t, int64_t> slots_;  // position of each chain in the spool
  bool repeat_ = false;
  int64_t longest_ = 0;  // largest announced number of rows
  std::vector<Parameter> parameters_;
  std::map<int32_t, Rows> columns_;
};

}  // namespace chainfleet
