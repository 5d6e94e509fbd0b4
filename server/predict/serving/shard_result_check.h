// Checks a worker's shard result, which is untrusted input, before it is added.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/domain/prediction.h"

namespace chainfleet {

// Returns the number of rows in `request`.
int64_t NumRows(const ShardRequest& request);

// Returns INTERNAL / BAD_SHARD_RESULT without the worker's name: "a worker's result " followed by `what`.
absl::Status BadShardResult(const std::string& what);

// For flatness: OK if there is one for each chain, instead of sums. Otherwise OK if `result` has, for each requested
// (chain, kind), exactly one partial whose arrays fit the request. Only a result that names corrupt objects may lack
// some, or have fewer draws than requested. The corrupt objects must be of the request's segments. Else BadShardResult.
absl::Status CheckShardResult(const ShardRequest& request, const ShardResult& result);

}  // namespace chainfleet
