// What a worker sends home is input: checked before it is added up.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/domain/prediction.h"

namespace chainfleet {

// The rows `request` asks for.
int64_t NumRows(const ShardRequest& request);

// INTERNAL / BAD_SHARD_RESULT, naming no worker: "a worker's result " and `what` is wrong with it.
absl::Status BadShardResult(const std::string& what);

// Of flatness: one for each chain, in place of sums. Else OK if `result` has, for each (chain, kind) asked for, exactly
// one partial whose arrays fit the request; only a result that names corrupt objects may lack some, or have fewer draws
// than asked. BadShardResult else.
absl::Status CheckShardResult(const ShardRequest& request, const ShardResult& result);

}  // namespace chainfleet
