// JSON encoding of records that the store keeps as text: plans, data sets, segment records. Field names are part of the
// store's format. Readers use defaults for absent fields and ignore unknown ones, so that version N reads records of
// N-1 and the additions of N+1.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/domain/worker_protocol.h"

namespace chainfleet {

// Decoding errors: DATA_LOSS with the parser's message.
std::string EncodeJobPlan(const JobPlan& plan);
absl::StatusOr<JobPlan> DecodeJobPlan(const std::string& text);

// Includes the tenant that stored it.
std::string EncodeDataset(const Dataset& dataset);
absl::StatusOr<Dataset> DecodeDataset(const std::string& text);

std::string EncodeModel(const StoredModel& model);
absl::StatusOr<StoredModel> DecodeModel(const std::string& text);

// Without chain, corrupt and deleted, which are columns.
std::string EncodeSegmentRecord(const SegmentRecord& record);
absl::StatusOr<SegmentRecord> DecodeSegmentRecord(const std::string& text);

std::string EncodeBlobRef(const BlobRef& ref);
absl::StatusOr<BlobRef> DecodeBlobRef(const std::string& text);

std::string EncodeCounts(const std::vector<int64_t>& counts);
absl::StatusOr<std::vector<int64_t>> DecodeCounts(const std::string& text);

// Sweep points that have enough, with the reason.
std::string EncodeStopped(const std::map<int32_t, std::string>& stopped);
absl::StatusOr<std::map<int32_t, std::string>> DecodeStopped(const std::string& text);

}  // namespace chainfleet
