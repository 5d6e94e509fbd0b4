// JSON encoding of records that the store keeps as text: plans, data sets, segment records. Field names are part of the
// store's format. Readers use defaults for absent fields and ignore unknown ones, so that version N reads records of
// N-1 and the additions of N+1.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

using DrawsOfChain = std::vector<int64_t>;             // Version::draws_of_chain
using StoppedPoints = std::map<int32_t, std::string>;  // JobRow::stopped

// The types that are stored as records. A data set and a model include the tenant that stored it; a segment record
// leaves out chain, corrupt and deleted, which are columns.
template <typename T>
concept IsRecord = std::same_as<T, JobPlan> || std::same_as<T, Dataset> || std::same_as<T, StoredModel> ||
    std::same_as<T, SegmentRecord> || std::same_as<T, BlobRef> || std::same_as<T, ResumeProof> ||
    std::same_as<T, DrawsOfChain> || std::same_as<T, StoppedPoints>;

template <IsRecord T>
std::string EncodeRecord(const T& value);
// DATA_LOSS with the parser's message.
template <IsRecord T>
absl::StatusOr<T> DecodeRecord(const std::string& text);

}  // namespace chainfleet
