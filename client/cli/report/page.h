// The report: one page that shows what a job is, what its draws are worth and whether its chains can be believed. The
// page is report.html with the charting library and one JSON document in it. It needs no network and no other file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"

namespace chainfleet {

// Targets and predictions of some rows, of a job that learns numbers.
struct PredictedRows {
  std::vector<int64_t> rows;      // rows of the data set
  v1::DatasetRowValues actual;    // their targets
  v1::PredictResponse predicted;  // with the quantiles at PredictedLevels()
};

// Levels of the quantiles that bound the central intervals whose coverage the page shows.
std::vector<double> PredictedLevels();

// The parts of a report. The page names each absent part, with the command that adds it.
struct ReportContents {
  v1::Job job;
  int32_t point = 0;  // point of the job's sweep; other points' traces, diagnostics and chains are left out
  std::optional<v1::Evaluation> evaluation;
  std::vector<v1::Traces> traces;     // by quantity
  v1::DatasetRowValues example_rows;  // those that evaluation->examples names, in that order; may be empty
  std::optional<PredictedRows> predicted_rows;
  int64_t num_classes = 0;               // K; 0: not known
  std::vector<std::string> class_names;  // names of classes 0, 1, ...; may be empty
  std::string server_version;
  absl::Time made_at;
};

// True if rows [channels, height, width] of this shape can be shown: 1 or 3 channels of 2 to 1,024 pixels a side.
bool IsPicture(const google::protobuf::RepeatedField<int64_t>& shape);

// The JSON document of the page. A draw is one network: counts of kept steps are multiplied by the kinds kept of each.
std::string ReportJson(const ReportContents& contents);

// UTF-8, whole.
std::string RenderReport(const ReportContents& contents);

}  // namespace chainfleet
