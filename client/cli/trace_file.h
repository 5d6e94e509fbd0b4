// Traced values of chains, for files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "client/lib/client.h"
#include "core/base/status.h"

namespace chainfleet {

// The traces of one quantity, or of all, energy first. NOT_FOUND / NOT_TRACED.
absl::StatusOr<std::vector<v1::Traces>> ReadTraces(Client* client, const std::string& job, const std::string& quantity);

// A line for each chain and step, rising, with the columns chain, point, step and one for each quantity. A cell is
// empty if the step has no value of the quantity.
std::string TracesCsv(const std::vector<v1::Traces>& traces);

// Writes the same columns as the CSV, or as an .npz of one array each, by the end of `path`. Returns the number of
// lines. Errors of WriteOutputFile.
absl::StatusOr<int64_t> WriteTraces(const std::vector<v1::Traces>& traces, const std::string& path);

}  // namespace chainfleet
