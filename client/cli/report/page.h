// The report: one page that says what a job is, what its draws are worth and whether its chains can be believed. It
// needs nothing beside itself: no network, script, font or picture of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"

namespace chainfleet {

// What a report is made of. Whatever is absent is left out of the page, with a line that says how to get it.
struct ReportContents {
  v1::Job job;
  int32_t point = 0;  // of the job's sweep: traces, diagnostics and chains of others are left out
  std::optional<v1::Evaluation> evaluation;
  std::vector<v1::Traces> traces;     // by quantity
  v1::DatasetRowValues example_rows;  // those that evaluation->examples names, in that order; may be empty
  int64_t num_classes = 0;            // K; 0: not known
  std::string server_version;
  absl::Time made_at;
};

// UTF-8, whole.
std::string RenderReport(const ReportContents& contents);

}  // namespace chainfleet
