// The draws of an export as arrays over chains and draws, spooled to a file on the way: whatever the job's size, a
// segment at a time is in memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/lib/draw_reader.h"
#include "core/base/status.h"
#include "core/formats/streamed_array.h"
#include "core/store/draw_codec/safetensors.h"

namespace chainfleet {

// Of each chain its number of rows: draws, or with `repeat` a draw as often as its weight says.
std::map<int32_t, int64_t> RowsOf(const std::vector<v1::SegmentRecord>& segments, bool repeat);

class DrawArrays {
 public:
  // `rows` as RowsOf gives them: as many at most come. The spool is a file without a name in the folder of `beside`.
  // FAILED_PRECONDITION naming the folder.
  static absl::StatusOr<DrawArrays> Make(const std::string& beside, std::map<int32_t, int64_t> rows, bool repeat);

  // Segments of a chain in order. FAILED_PRECONDITION for a weight that is no whole number, to repeat by; DATA_LOSS for
  // more than was announced; RESOURCE_EXHAUSTED for a full disk.
  absl::Status Add(const CheckedSegment& segment);

  // Of chains that have rows, in order: what has come of each.
  const std::map<int32_t, int64_t>& rows() const { return done_; }
  // Of each parameter of each kind, "theta/NAME": its shape, in the order of the segments.
  std::vector<std::pair<std::string, std::vector<int64_t>>> parameters() const;

  // "theta/NAME" [chain, draw, ...], NaN where a chain is shorter than the longest; `step` [chain, draw], -1 there;
  // `weight` likewise, NaN there, unless draws are repeated; `chain` and `draws` [chain].
  std::vector<StreamedArray> Stacked() const;
  // Of one chain, without the axis of chains.
  std::vector<StreamedArray> OfChain(int32_t chain) const;

 private:
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;         // of one draw
    int64_t row_bytes = 0, offset = 0;  // in the spool: [chains, longest, row_bytes]
  };
  struct Rows {
    std::vector<int64_t> steps;
    std::vector<double> weights;
  };
  DrawArrays(int spool, std::map<int32_t, int64_t> rows, bool repeat);

  absl::Status Plan(const std::vector<TensorView>& tensors);
  absl::StatusOr<std::vector<int64_t>> CopiesOf(const std::vector<Draw>& draws) const;
  // From that row of the spool on: each of the rows in `data` so many times.
  absl::Status Write(const Parameter& parameter, int64_t row, const char* data, const std::vector<int64_t>& copies);
  StreamedArray RowsOfChain(const Parameter& parameter, int32_t chain) const;
  StreamedArray Stack(const Parameter& parameter, int64_t longest) const;

  std::shared_ptr<const int> spool_;
  std::map<int32_t, int64_t> announced_, done_;
  std::map<int32_t, int64_t> slots_;  // places in the spool
  bool repeat_ = false;
  int64_t longest_ = 0;  // of what is announced
  std::vector<Parameter> parameters_;
  std::map<int32_t, Rows> columns_;
};

}  // namespace chainfleet
