// The draws of an export as arrays over chains and draws. They are spooled to a file, so that only one segment is in
// memory, whatever the job's size.
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

// Number of rows of each chain: its draws or, with `repeat`, each draw as often as its weight says.
std::map<int32_t, int64_t> RowsOf(const std::vector<v1::SegmentRecord>& segments, bool repeat);

class DrawArrays {
 public:
  // `rows` come from RowsOf and bound the rows of each chain. The spool is an unnamed file in the folder of `beside`.
  // FAILED_PRECONDITION, naming the folder.
  static absl::StatusOr<DrawArrays> Make(const std::string& beside, std::map<int32_t, int64_t> rows, bool repeat);

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
  // The arrays of one chain, without the axis of chains.
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
  // Writes each row in `data` as often as `copies` says, from row `row` of the spool on.
  absl::Status Write(const Parameter& parameter, int64_t row, const char* data, const std::vector<int64_t>& copies);
  StreamedArray RowsOfChain(const Parameter& parameter, int32_t chain) const;
  StreamedArray Stack(const Parameter& parameter, int64_t longest) const;

  std::shared_ptr<const int> spool_;
  std::map<int32_t, int64_t> announced_, done_;
  std::map<int32_t, int64_t> slots_;  // position of each chain in the spool
  bool repeat_ = false;
  int64_t longest_ = 0;  // largest announced number of rows
  std::vector<Parameter> parameters_;
  std::map<int32_t, Rows> columns_;
};

}  // namespace chainfleet
