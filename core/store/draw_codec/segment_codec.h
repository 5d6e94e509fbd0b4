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

// Returns the bytes of a segment's object, a safetensors file with one or more consecutive draws of one chain.
// `segment` has their first index, kinds and parent digest. Sets its steps, its weights and its digest:
// SHA-256(format, parent digest, job, chain, first index, steps, kinds, weights, tensor bytes).
// REQUIRES: every theta[k] has NumParameters(parameters) values (checked).
std::string EncodeSegment(const ChainId& chain, const std::vector<Draw>& draws,
                          const std::vector<ParameterShape>& parameters, Segment* segment);

struct SegmentContent {
  ChainId chain;
  Segment segment;  // with the digest of this content, for comparison with the record's; without its object
  std::vector<Draw> draws;
};

// Returns the content of an object, with parameters in the order of its bytes. DATA_LOSS: the object is damaged.
// FAILED_PRECONDITION names both format numbers: the object's format is newer, or too old.
absl::StatusOr<SegmentContent> DecodeSegment(const std::string& bytes);

}  // namespace chainfleet
