// Draws for ArviZ, as a folder of Zarr: the groups that Job.to_arviz of the Python package gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"
#include "client/lib/client.h"
#include "core/base/status.h"
#include "core/domain/draw.h"

namespace chainfleet {

struct ArvizOptions {
  std::string point;            // sweep point
  std::string dataset;          // rows of log_likelihood and observed_data; "": those that the job learned from
  std::vector<int32_t> chains;  // empty: all
  DrawKind kind = DrawKind::kTheta;
  bool log_likelihood = true, include_failed = false;
};

// Writes the groups posterior, sample_stats, log_likelihood and observed_data to the folder `output`, which exists.
// Each object of draws, and the predictions of one request, are in memory; the rest is in files without names beside
// the folder. Warnings are on stderr. Returns one line for people. INVALID_ARGUMENT: the draws are weighted, or a row
// has a class that the job did not learn. FAILED_PRECONDITION / NO_DRAWS. ABORTED: draws were deleted meanwhile. Errors
// of calls and files.
absl::StatusOr<std::string> ExportArviz(Client* client, const v1::Job& job, const ArvizOptions& options,
                                        const std::string& output);

}  // namespace chainfleet
