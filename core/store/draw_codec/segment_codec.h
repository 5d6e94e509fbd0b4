// Draws in and out of segment objects: docs/explanation/store_format.md has the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/draw.h"
#include "core/domain/model_spec.h"

namespace chainfleet {

inline constexpr int32_t kSegmentFormatVersion = 1;
inline constexpr int32_t kOldestSegmentFormatVersion = 1;

// 1..n consecutive draws of one chain; every draw has all kinds.
struct SegmentContent {
  ChainId chain;
  int64_t first_index = 0;
  DigestHex parent_digest;
  std::vector<DrawKind> kinds;
  std::vector<Draw> draws;
};

struct EncodedSegment {
  std::string bytes;  // of the safetensors object
  DigestHex digest;   // of the content, chained to its parent
};

// Every theta[k] must have NumParameters(parameters) values (a checked invariant).
EncodedSegment EncodeSegment(const SegmentContent& content, const std::vector<ParameterShape>& parameters);

// The content of an object, parameters in the order of its bytes. DATA_LOSS if it is damaged, FAILED_PRECONDITION with
// both numbers if its format is newer or too old. The digest is not checked here: compare SegmentDigest.
absl::StatusOr<SegmentContent> DecodeSegment(const std::string& bytes);

// SHA-256(format, parent digest, job, chain, first index, steps, kinds, weights, tensor bytes).
DigestHex SegmentDigest(const SegmentContent& content);

}  // namespace chainfleet
