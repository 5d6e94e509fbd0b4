// Encodes and decodes segment objects; docs/explanation/store_format.md has the format.
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

// One or more consecutive draws of one chain; every draw has all kinds.
struct SegmentContent {
  ChainId chain;
  int64_t first_index = 0;
  DigestHex parent_digest;
  std::vector<DrawKind> kinds;
  std::vector<Draw> draws;
};

struct EncodedSegment {
  std::string bytes;  // a safetensors file
  DigestHex digest;   // digest of the content, chained to its parent
};

// REQUIRES: every theta[k] has NumParameters(parameters) values (checked).
EncodedSegment EncodeSegment(const SegmentContent& content, const std::vector<ParameterShape>& parameters);

// Returns the content of an object, with parameters in the order of its bytes. DATA_LOSS: the object is damaged.
// FAILED_PRECONDITION names both format numbers: the object's format is newer, or too old. Does not check the digest:
// compare SegmentDigest.
absl::StatusOr<SegmentContent> DecodeSegment(const std::string& bytes);

// Returns SHA-256(format, parent digest, job, chain, first index, steps, kinds, weights, tensor bytes).
DigestHex SegmentDigest(const SegmentContent& content);

}  // namespace chainfleet
